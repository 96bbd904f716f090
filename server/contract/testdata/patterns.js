// Reads {"patterns": […], "texts": […]} and prints, for each pattern and flag, which texts match, as 0 and 1.
const { patterns, texts } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
for (const flag of ["", "u"]) {
  for (const pattern of patterns) {
    const compiled = new RegExp(pattern, flag);
    console.log(texts.map((text) => Number(compiled.test(text))).join(""));
  }
}
