package advice

import (
	"fmt"
	"strconv"
	"strings"
)

// maxLinesTold is how many lines one piece of advice names.
const maxLinesTold = 10

// lines are numbers of lines, counted from 1.
type lines []int

// prefix begins a sentence about the lines, such as "lines 1, 2 and 5: "; "" where there are none.
func (l lines) prefix() string {
	switch len(l) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("line %d: ", l[0])
	}
	told, last := l[:len(l)-1], strconv.Itoa(l[len(l)-1])
	if more := len(l) - maxLinesTold; more > 0 {
		told, last = l[:maxLinesTold], fmt.Sprint(more, " more")
	}
	numbers := make([]string, len(told))
	for i, number := range told {
		numbers[i] = strconv.Itoa(number)
	}
	return "lines " + strings.Join(numbers, ", ") + " and " + last + ": "
}
