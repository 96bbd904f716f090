# Reads {"patterns": […], "texts": […]} and prints, for each pattern, which texts match, as 0 and 1.
import json, re, sys

given = json.load(sys.stdin)
for pattern in given["patterns"]:
    compiled = re.compile(pattern)
    print("".join("1" if compiled.search(text) else "0" for text in given["texts"]))
