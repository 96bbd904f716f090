// Each command, body and response gets a button that copies it.
for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.addEventListener("click", () => {
    // The Clipboard API needs HTTPS, which the server may not have.
    getSelection().setBaseAndExtent(block, 1, block, block.childNodes.length);
    button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
  });
  block.prepend(button);
}
