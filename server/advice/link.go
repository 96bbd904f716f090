package advice

import (
	"fmt"
	"strings"
)

// The limits of a Link header, without the last link.
const (
	maxLinks     = 20
	maxLinkBytes = 2 << 10
)

// Link returns advice as the value of a Link header (RFC 8288): a link to each rule on the page at path, with the field
// as a URI fragment (RFC 6901, section 6) in anchor and the sentence in title. It returns "" if there is no advice. It
// has at most 20 links and 2 KiB; if there is more advice, a last link leads to the page.
func Link(given []Advice, path string) string {
	var links []string
	length := 0
	for _, item := range given {
		title := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(item.Detail)
		link := fmt.Sprintf(`<%s#%s>; rel="help"; anchor="#%s"; title="%s"`, path, item.Code, item.Pointer, title)
		length += len(link) + len(", ")
		if len(links) == maxLinks || length > maxLinkBytes {
			links = append(links, fmt.Sprintf(`<%s>; rel="help"`, path))
			break
		}
		links = append(links, link)
	}
	return strings.Join(links, ", ")
}
