package advice

import (
	"fmt"
	"strconv"
	"strings"
)

// maxListedLines is how many line numbers one piece of advice lists.
const maxListedLines = 10

// lines holds line numbers, counted from 1.
type lines []int

// prefix returns the beginning of a detail, such as "Lines 1, 2 and 5: "; "" for no lines.
func (l lines) prefix() string {
	switch len(l) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Line %d: ", l[0])
	}
	listed, last := l[:len(l)-1], strconv.Itoa(l[len(l)-1])
	if more := len(l) - maxListedLines; more > 0 {
		listed, last = l[:maxListedLines], fmt.Sprint(more, " more")
	}
	numbers := make([]string, len(listed))
	for i, number := range listed {
		numbers[i] = strconv.Itoa(number)
	}
	return "Lines " + strings.Join(numbers, ", ") + " and " + last + ": "
}
