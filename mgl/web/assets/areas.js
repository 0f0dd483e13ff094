// A hyperedge is drawn as an area around the nodes that it joins; its own node is the handle.

/** The corners of the convex hull, in order (Andrew's monotone chain). */
export function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const half = (order) => {
    const kept = [];
    for (const point of order) {
      while (kept.length > 1 && turn(kept.at(-2), kept.at(-1), point) <= 0) kept.pop();
      kept.push(point);
    }
    return kept.slice(0, -1);
  };
  const found = [...half(sorted), ...half(sorted.reverse())];
  return found.length ? found : points.slice(0, 1);
}

/** The outline of a hull moved outward by a margin, its corners rounded. */
export function enclose(points, margin) {
  const path = new Path2D();
  const around = hull(points);
  if (around.length === 1) {
    path.arc(...around[0], margin, 0, 2 * Math.PI);
    return path;
  }
  around.forEach(([ax, ay], index) => {
    const [bx, by] = around[(index + 1) % around.length];
    const out = Math.atan2(ax - bx, by - ay);
    const [px, py] = around.at(index - 1);
    const last = Math.atan2(px - ax, ay - py);
    path.arc(ax, ay, margin, last, out);
  });
  path.closePath();
  return path;
}
