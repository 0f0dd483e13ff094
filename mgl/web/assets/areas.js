// A hyperedge is drawn as an area around the nodes that it joins; its own node is the handle.

const hyperedges = data.nodes.filter((node) => node.hyperedge);

function buildAreas() {
  hyperedges.forEach((node, index) => {
    node.area = draw("path", { class: `area k${node.look.colour}`, "data-ref": node.ref });
    node.margin = 15 + 4 * (index % 4);
  });
  const largestFirst = [...hyperedges].sort((one, other) => ties(other).length - ties(one).length);
  byId("areas").append(...largestFirst.map((node) => node.area));
}

/** The corners of the convex hull, in order (Andrew's monotone chain). */
function hull(points) {
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
  const corners = [...half(sorted), ...half(sorted.reverse())];
  return corners.length ? corners : points.slice(0, 1);
}

/** The outline of a hull moved outward by a margin, its corners rounded. */
function rounded(corners, margin) {
  const put = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  if (corners.length === 1) {
    const [[x, y]] = corners;
    return `M${put(x - margin, y)}a${margin} ${margin} 0 1 1 ${2 * margin} 0a${margin} ${margin} 0 1 1 ${-2 * margin} 0z`;
  }
  const sides = corners.map(([ax, ay], index) => {
    const [bx, by] = corners[(index + 1) % corners.length];
    const length = Math.hypot(bx - ax, by - ay);
    const [outX, outY] = [((by - ay) / length) * margin, ((ax - bx) / length) * margin];
    return [put(ax + outX, ay + outY), put(bx + outX, by + outY)];
  });
  const arc = `A${margin} ${margin} 0 0 1 `;
  return `M${sides.map(([from, to], index) => `${index ? arc + from : from}L${to}`).join("")}${arc}${sides[0][0]}z`;
}

function placeArea(node) {
  const inside = [node, ...tied(node)];
  const reach = Math.max(...inside.map((each) => each.radius)) * size() + node.margin;
  const places = new Map(inside.map(at).map((place) => [place.join(" "), place]));
  node.area.setAttribute("d", rounded(hull([...places.values()]), reach));
}
