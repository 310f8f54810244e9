// Packs pictures for an animated PNG: 256 colours, and of each picture the rectangle that changed.
"use strict";
const counts = new Uint32Array(65536); // of the pixels of similar colours, and the sums of their parts
const sums = new Float64Array(3 * 65536);
const read = async (frames, caption) => {
  const pictures = [];
  let canvas = null;
  for (const [png, words] of frames) {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    canvas ||= new OffscreenCanvas(image.width, image.height + caption);
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.drawImage(image, 0, 0);
    pen.fillStyle = "#22242a";
    pen.fillRect(0, image.height, canvas.width, caption);
    pen.fillStyle = "#fbfaf8";
    pen.font = "15px ui-monospace, Menlo, Consolas, monospace";
    pen.fillText(words, 16, image.height + caption / 2 + 5);
    const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    const bins = new Uint16Array(data.length / 4); // five bits of red and blue, six of green
    for (let at = 0; at < bins.length; at++) {
      const [red, green, blue] = data.subarray(4 * at, 4 * at + 3);
      const bin = bins[at] = (red >> 3) << 11 | (green >> 2) << 5 | blue >> 3;
      counts[bin]++;
      sums[3 * bin] += red;
      sums[3 * bin + 1] += green;
      sums[3 * bin + 2] += blue;
    }
    pictures.push(bins);
  }
  return { pictures, width: canvas.width, height: canvas.height };
};
const rgb = (bin) => [0, 1, 2].map((part) => Math.round(sums[3 * bin + part] / counts[bin]));
// The colours seen most, and for each of the others the nearest of them.
const paletteOf = () => {
  const seen = [...counts.keys()].filter((colour) => counts[colour]).sort((a, b) => counts[b] - counts[a]);
  const chosen = seen.slice(0, 256).map(rgb);
  const index = new Uint8Array(65536);
  for (const colour of seen) {
    const [red, green, blue] = rgb(colour);
    let [best, least] = [0, Infinity];
    chosen.forEach(([r, g, b], at) => {
      const far = 2 * (r - red) ** 2 + 4 * (g - green) ** 2 + 3 * (b - blue) ** 2;
      if (far < least) [best, least] = [at, far];
    });
    index[colour] = best;
  }
  return { palette: chosen.flat(), index };
};
const changed = (before, now, width, height) => {
  let [left, right, top, bottom] = [width, -1, height, -1];
  for (let at = 0; at < now.length; at++) {
    if (before && before[at] === now[at]) continue;
    const [x, y] = [at % width, Math.floor(at / width)];
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return right < 0 ? [0, 0, 1, 1] : [left, top, right - left + 1, bottom - top + 1];
};
const deflated = async (bytes) => {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (let at = 0; at < packed.length; at += 8192) text += String.fromCharCode(...packed.subarray(at, at + 8192));
  return btoa(text);
};
window.packed = async (given, caption) => {
  const { pictures, width, height } = await read(given, caption);
  const { palette, index } = paletteOf();
  const frames = [];
  let before = null;
  for (const picture of pictures) {
    const now = picture.map((colour) => index[colour]);
    const [x, y, wide, high] = changed(before, now, width, height);
    const rows = new Uint8Array((wide + 1) * high); // each row begins with its filter, none
    for (let row = 0; row < high; row++) {
      const from = (y + row) * width + x;
      rows.set(now.subarray(from, from + wide), row * (wide + 1) + 1);
    }
    frames.push({ x, y, width: wide, height: high, data: await deflated(rows) });
    before = now;
  }
  return { palette, frames, width, height };
};
