/* Loops over a chunk of rows that the compiler turns into vectors; C, since Cython has no `restrict`.

   They are for whole numbers that floats represent exactly, a hundred times as much included: below MAX_EXACT. */

#include <math.h>
#include <stdint.h>

#define CHUNK 64
#define MAX_EXACT ((int64_t)1 << 46)

#if defined(_MSC_VER)
#define RESTRICT __restrict
#define SEPARATE static __declspec(noinline)
#else
#define RESTRICT restrict
#define SEPARATE static __attribute__((noinline)) /* a loop for itself is vectorised, one within another is not */
#endif

/* part / whole, rounded to the nearest double as the division is; `inverse` is 1 / whole, rounded.

   For whole numbers 0 <= part < 2^53 and 0 < whole < 2^46. Where a machine has fused operations, three operations take
   a third of the time of a division. Why the result is the same: `near` is at most 2 ulp from the quotient, so the
   rest, a multiple of ulp(near) and at most 2 * whole of them, is exact. Before its last rounding the result differs
   from the quotient by rest / whole * 2^-53, at most 2^-52 ulp. That changes the rounding only if a point half-way
   between two doubles is as near to the quotient. A half-way point has 54 significant bits and `part` has fewer, so the
   quotient is none; it is at least ulp / 2 / whole away from the next, more than 2^-47 ulp. */
#if defined(__FP_FAST_FMA) || defined(__FMA__) || (defined(__aarch64__) && defined(__GNUC__))
static inline double quotient(double part, double whole, double inverse) {
    double near = part * inverse;
    return __builtin_fma(__builtin_fma(-near, whole, part), inverse, near);
}
#else
static inline double quotient(double part, double whole, double inverse) {
    (void)inverse;
    return part / whole;
}
#endif

/* A number that is not negative, cut. Not every machine has an instruction that rounds floats. */
#if defined(__aarch64__) || defined(__SSE4_1__)
#define CUT(number) trunc(number)
#else
#define CUT(number) ((double)(int64_t)(number))
#endif

/* What the points of a row depend on besides its amounts, for two resources. */
typedef struct {
    double usage_amount[2];     /* what the pod adds to the usage of the share rule */
    double requested_amount[2]; /* and to the requests of the balance rule */
    double weight[2];           /* of the resources in the share rule */
    double weight_sum;
    double share_weight; /* of the rules */
    double balance_weight;
    int is_least;
} Scores;

/* The columns of a resource at a chunk of rows. */
typedef struct {
    const int64_t *capacity;
    const int64_t *usage;
    const int64_t *requested;
} Amounts;

/* Mark the rows that have less than `wanted` free. */
SEPARATE void mark_short(int64_t *RESTRICT apart, const int64_t *RESTRICT capacity, const int64_t *RESTRICT used,
                         int64_t wanted) {
    for (int r = 0; r < CHUNK; r++)
        apart[r] |= -(int64_t)(capacity[r] - used[r] < wanted);
}

SEPARATE int has_any(const int64_t *RESTRICT marks) {
    int64_t bits = 0;
    for (int r = 0; r < CHUNK; r++)
        bits |= marks[r];
    return bits != 0;
}

/* Whether all amounts of a resource are exact as floats, and no capacity is 0. */
SEPARATE int are_exact(Amounts a) {
    const int64_t *RESTRICT capacity = a.capacity, *RESTRICT usage = a.usage, *RESTRICT requested = a.requested;
    int64_t bits = 0;
    for (int r = 0; r < CHUNK; r++)
        bits |= capacity[r] | (capacity[r] - 1) | usage[r] | requested[r];
    return (bits & -MAX_EXACT) == 0;
}

/* The hundredths of a capacity that are free, or used, cut. */
static inline double percent(double whole, double inverse, double used, int is_least) {
    double part = is_least ? fmax(whole - used, 0.0) : fmin(used, whole);
    return CUT(quotient(part * 100.0, whole, inverse));
}

static inline double share(double whole, double inverse, double used) {
    return fmin(quotient(used, whole, inverse), 1.0);
}

static inline double evenness_of_two(double first, double second) {
    return CUT((1.0 - fabs((first - second) / 2.0)) * 100.0);
}

static inline void add_points_of(double *RESTRICT points, Amounts a, Amounts b, Scores scores, int is_least) {
    const int64_t *RESTRICT capacity_a = a.capacity, *RESTRICT usage_a = a.usage, *RESTRICT requested_a = a.requested;
    const int64_t *RESTRICT capacity_b = b.capacity, *RESTRICT usage_b = b.usage, *RESTRICT requested_b = b.requested;
    double over_weights = 1.0 / scores.weight_sum;
    for (int r = 0; r < CHUNK; r++) {
        double whole_a = (double)capacity_a[r], inverse_a = 1.0 / whole_a;
        double whole_b = (double)capacity_b[r], inverse_b = 1.0 / whole_b;
        double sum = percent(whole_a, inverse_a, (double)usage_a[r] + scores.usage_amount[0], is_least) * scores.weight[0];
        sum += percent(whole_b, inverse_b, (double)usage_b[r] + scores.usage_amount[1], is_least) * scores.weight[1];
        double used_a = (double)requested_a[r], used_b = (double)requested_b[r];
        double before = evenness_of_two(share(whole_a, inverse_a, used_a), share(whole_b, inverse_b, used_b));
        used_a += scores.requested_amount[0];
        used_b += scores.requested_amount[1];
        double after = evenness_of_two(share(whole_a, inverse_a, used_a), share(whole_b, inverse_b, used_b));
        points[r] = CUT(quotient(sum, scores.weight_sum, over_weights)) * scores.share_weight +
                    (50.0 + CUT((50.0 + after - before) / 2.0)) * scores.balance_weight;
    }
}

/* The weighted points of a chunk of rows whose amounts are exact. */
SEPARATE void score_two(int64_t *RESTRICT out, Amounts a, Amounts b, Scores scores) {
    double points[CHUNK]; /* of this function, so it is none of the columns */
    if (scores.is_least)
        add_points_of(points, a, b, scores, 1);
    else
        add_points_of(points, a, b, scores, 0);
    for (int r = 0; r < CHUNK; r++)
        out[r] = (int64_t)points[r];
}
