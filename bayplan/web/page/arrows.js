// Arrows: from the node that a pod has to the one that it would get, over the tiles. Pods without a node come from the
// right edge, beside which they are listed, and go there.

const MOST_ARROWS = 400;
/** The number of the first node that a question adds; the next ones are below it. */
const FIRST_NEW = -10;

/** Moves between the same nodes as one arrow with their number. */
function joinMoves(moves) {
  const numbers = new Map();
  for (const [from, to] of moves) {
    if (from === to) continue;
    const key = `${from} ${to}`;
    numbers.set(key, (numbers.get(key) || 0) + 1);
  }
  return [...numbers].slice(0, MOST_ARROWS).map(([key, number]) => [...key.split(" ").map(Number), number]);
}

/** Draws an arrow between the middles of two tiles. */
function drawArrow(context, from, to, number, colour) {
  const dx = to.x - from.x, dy = to.y - from.y;
  const long = Math.hypot(dx, dy) || 1;
  const bend = Math.min(40, long / 5);
  const middle = { x: (from.x + to.x) / 2 - (dy / long) * bend, y: (from.y + to.y) / 2 + (dx / long) * bend };
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = Math.min(6, 1 + Math.log2(number + 1));
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.quadraticCurveTo(middle.x, middle.y, to.x, to.y);
  context.stroke();
  const angle = Math.atan2(to.y - middle.y, to.x - middle.x);
  context.beginPath();
  context.moveTo(to.x, to.y);
  for (const turn of [-0.45, 0.45]) context.lineTo(to.x - 11 * Math.cos(angle + turn), to.y - 11 * Math.sin(angle + turn));
  context.fill();
}
