// Pictures compared with tolerance.

/** The share of two PNG files that differs visibly at a quarter of their size, where glyphs are gray. */
export async function differing(browser, one, other) {
  const page = await browser.newPage();
  const pictures = [one.toString("base64"), other.toString("base64")];
  const share = await page.evaluate(async (pictures) => {
    const read = async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const canvas = new OffscreenCanvas(Math.floor(bitmap.width / 4), Math.floor(bitmap.height / 4));
      const context = canvas.getContext("2d");
      context.imageSmoothingQuality = "high";
      context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      return context.getImageData(0, 0, canvas.width, canvas.height);
    };
    const [a, b] = await Promise.all(pictures.map(read));
    if (a.width !== b.width || a.height !== b.height) return 1;
    let different = 0;
    for (let at = 0; at < a.data.length; at += 4) {
      const far = [0, 1, 2].some((channel) => Math.abs(a.data[at + channel] - b.data[at + channel]) > 40);
      if (far) different++;
    }
    return different / (a.width * a.height);
  }, pictures);
  await page.close();
  return share;
}
