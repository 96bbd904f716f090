package flags

import (
	"os"
	"os/user"
	"strconv"
)

// OSUser returns the name of the user who runs the program, or the user id if that has no name.
func OSUser() string {
	current, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Getuid())
	}
	return current.Username
}
