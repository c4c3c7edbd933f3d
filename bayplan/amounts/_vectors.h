/* Loops over a chunk of rows that the compiler turns into vectors; C, since Cython has no `restrict`.

   They are for whole numbers that floats represent exactly, with bits to spare for a hundred times as much: below
   MAX_EXACT. */

#include <math.h>
#include <stdint.h>

#define CHUNK 64
#define MAX_EXACT ((int64_t)1 << 43)

#if defined(_MSC_VER)
#define RESTRICT __restrict
#define SEPARATE static __declspec(noinline)
#define UNROLLED
#else
#define RESTRICT restrict
#define UNROLLED _Pragma("GCC unroll 8")
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
/* compiled twice: the loader takes the wider vectors where the machine has them. A function per loop: a loop within
   another is not vectorised */
#define SEPARATE static __attribute__((noinline, target_clones("avx2", "default")))
#else
#define SEPARATE static __attribute__((noinline))
#endif
#endif

/* Numbers here are from 0 up to 2^51. ARM has vector instructions for conversions, for rounding, and for a product and
   a sum in one. x86-64 has none of them in all its forms: there the bits of a double between 2^52 and 2^53 are used,
   whose last bit stands for 1. */
#if defined(__aarch64__) && defined(__GNUC__)
static inline double float_of(int64_t number) { return (double)number; }
static inline int64_t whole_of(double number) { return (int64_t)number; }
static inline double cut(double number) { return trunc(number); }
static inline double smaller(double first, double second) { return fmin(first, second); }
static inline double larger(double first, double second) { return fmax(first, second); }
static inline double multiply_add(double first, double second, double third) {
    return __builtin_fma(first, second, third);
}

/* part / whole, rounded to the nearest double as the division is; `inverse` is 1 / whole, rounded.

   For whole numbers 0 <= part < 2^53 and 0 < whole < 2^46; three operations take a third of the time of a division. Why
   the result is the same: `near` is at most 2 ulp from the quotient, so the rest, a multiple of ulp(near) and at most
   2 * whole of them, is exact. Before its last rounding the result differs from the quotient by rest / whole * 2^-53,
   at most 2^-52 ulp. That changes the rounding only if a point half-way between two doubles is as near to the quotient.
   A half-way point has 54 significant bits and `part` has fewer, so the quotient is none; it is at least
   ulp / 2 / whole away from the next, more than 2^-47 ulp. */
static inline double quotient(double part, double whole, double inverse) {
    double near = part * inverse;
    return multiply_add(multiply_add(-near, whole, part), inverse, near);
}
#else
#define TWO_52 4503599627370496.0
#define BITS_OF_TWO_52 ((int64_t)0x433 << 52)
typedef union {
    int64_t bits;
    double value;
} Bits;

static inline double float_of(int64_t number) { return (Bits){.bits = number | BITS_OF_TWO_52}.value - TWO_52; }
static inline int64_t whole_of(double number) { return (Bits){.value = number + TWO_52}.bits & ~BITS_OF_TWO_52; }
static inline double cut(double number) {
    double nearest = (number + TWO_52) - TWO_52;
    return nearest - (nearest > number ? 1.0 : 0.0);
}
/* `fmin` and `fmax` would be calls, which a vectorised loop cannot have: they have rules for what is no number. */
static inline double smaller(double first, double second) { return first < second ? first : second; }
static inline double larger(double first, double second) { return first > second ? first : second; }
static inline double multiply_add(double first, double second, double third) { return first * second + third; }
static inline double quotient(double part, double whole, double inverse) {
    (void)inverse;
    return part / whole;
}
#endif

/* What the points of a row depend on besides its amounts, for two resources. */
typedef struct {
    double usage_amount[2];     /* what the pod adds to the usage of the share rule */
    double requested_amount[2]; /* and to the requests of the balance rule */
    double weight[2];           /* of the resources in the share rule */
    double weight_sum;
    double share_weight; /* of the rules */
    double balance_weight;
    double counts_before; /* 1: the balance rule scores the change; 0: the balance with the pod */
    double balance_scale;
    double balance_offset;
    double least_balance;
    int is_least;
} Scores;

/* The columns of a resource at a chunk of rows. */
typedef struct {
    const int64_t *capacity;
    const int64_t *usage;
    const int64_t *requested;
} Amounts;

/* Whether a row has less than `wanted` free. */
SEPARATE int lacks_any(const int64_t *RESTRICT capacity, const int64_t *RESTRICT used, int64_t wanted) {
    int64_t bits = 0;
    UNROLLED
    for (int r = 0; r < CHUNK; r++)
        bits |= -(int64_t)(capacity[r] - used[r] < wanted);
    return bits != 0;
}

/* Mark the rows that have less than `wanted` free. */
SEPARATE void mark_short(int64_t *RESTRICT apart, const int64_t *RESTRICT capacity, const int64_t *RESTRICT used,
                         int64_t wanted) {
    for (int r = 0; r < CHUNK; r++)
        apart[r] |= -(int64_t)(capacity[r] - used[r] < wanted);
}

#define EXACT 1
#define ALIKE 2

/* EXACT: all amounts of a resource are exact as floats, and no capacity is 0. ALIKE: all capacities are equal; nodes of
   one kind mostly come one after the other. */
SEPARATE int inspect(Amounts a) {
    const int64_t *RESTRICT capacity = a.capacity, *RESTRICT usage = a.usage, *RESTRICT requested = a.requested;
    int64_t bits = 0, others = 0, first = capacity[0];
    UNROLLED
    for (int r = 0; r < CHUNK; r++) {
        bits |= capacity[r] | (capacity[r] - 1) | usage[r] | requested[r];
        others |= capacity[r] ^ first;
    }
    return ((bits & -MAX_EXACT) == 0 ? EXACT : 0) | (others == 0 ? ALIKE : 0);
}

/* The whole part of a quotient of whole numbers that is 100 at most: of `part` times `factor`, where `factor` is
   100 / whole or 1 / weights, each rounded twice at most, and `half` is a half of 1 / whole.

   With a half more, the hundredfold part is not a multiple of `whole`: the quotient is at least half / whole away from
   a whole number, more than 2^-44. The error is less: 100 times 2^-52 for `factor`, 100 times 2^-53 for the product
   where it is rounded, and 2^-47 for the sum. */
static inline double whole_part(double part, double factor, double half) {
    return cut(multiply_add(part, factor, half));
}

/* Halving is exact, so the fused operation gives what both give one after the other. */
static inline double evenness_of_two(double first, double second) {
    return cut(multiply_add(fabs(first - second), -0.5, 1.0) * 100.0);
}

/* A capacity, and what is computed from it alone. */
typedef struct {
    double whole, inverse, factor, half;
} Capacity;

static inline Capacity capacity_of(int64_t amount) {
    double whole = float_of(amount), inverse = 1.0 / whole;
    return (Capacity){whole, inverse, inverse * 100.0, inverse * 0.5};
}

/* The hundredths of a capacity that are free, or used, cut. */
static inline double percent(Capacity of, double used, double amount, int is_least) {
    double part = is_least ? larger((of.whole - amount) - used, 0.0) : smaller(used + amount, of.whole);
    return whole_part(part, of.factor, of.half);
}

static inline double share(Capacity of, double used) { return smaller(quotient(used, of.whole, of.inverse), 1.0); }

static inline double evenness(Capacity a, Capacity b, double used_a, double used_b) {
    return evenness_of_two(share(a, used_a), share(b, used_b));
}

static inline void add_points_of(double *RESTRICT points, Amounts a, Amounts b, Scores scores, int is_least,
                                 int is_alike) {
    const int64_t *RESTRICT capacity_a = a.capacity, *RESTRICT usage_a = a.usage, *RESTRICT requested_a = a.requested;
    const int64_t *RESTRICT capacity_b = b.capacity, *RESTRICT usage_b = b.usage, *RESTRICT requested_b = b.requested;
    double over_weights = 1.0 / scores.weight_sum, half = over_weights * 0.5;
    double least_balance = scores.least_balance * scores.balance_weight;
    Capacity of_a = capacity_of(capacity_a[0]), of_b = capacity_of(capacity_b[0]);
    for (int r = 0; r < CHUNK; r++) {
        if (!is_alike)
            of_a = capacity_of(capacity_a[r]), of_b = capacity_of(capacity_b[r]);
        double sum = percent(of_a, float_of(usage_a[r]), scores.usage_amount[0], is_least) * scores.weight[0];
        double percent_b = percent(of_b, float_of(usage_b[r]), scores.usage_amount[1], is_least);
        sum = multiply_add(percent_b, scores.weight[1], sum);
        double used_a = float_of(requested_a[r]), used_b = float_of(requested_b[r]);
        double before = evenness(of_a, of_b, used_a, used_b);
        double after = evenness(of_a, of_b, used_a + scores.requested_amount[0], used_b + scores.requested_amount[1]);
        double gain = multiply_add(before, -scores.counts_before, after);
        gain = cut(multiply_add(gain, scores.balance_scale, scores.balance_offset));
        double of_share = multiply_add(whole_part(sum, over_weights, half), scores.share_weight, least_balance);
        points[r] = multiply_add(gain, scores.balance_weight, of_share);
    }
}

/* The weighted points of a chunk of rows whose amounts are exact; `is_alike`: their capacities are equal. */
SEPARATE void score_two(int64_t *RESTRICT out, Amounts a, Amounts b, Scores scores, int is_alike) {
    double points[CHUNK]; /* of this function, so it is none of the columns */
    if (scores.is_least && is_alike)
        add_points_of(points, a, b, scores, 1, 1);
    else if (scores.is_least)
        add_points_of(points, a, b, scores, 1, 0);
    else if (is_alike)
        add_points_of(points, a, b, scores, 0, 1);
    else
        add_points_of(points, a, b, scores, 0, 0);
    UNROLLED
    for (int r = 0; r < CHUNK; r++)
        out[r] = whole_of(points[r]);
}
