package processtest

import (
	"errors"
	"fmt"
	"os"
)

// OverwriteBeginning writes content over the beginning of a file, whose end stays. It returns a file system error.
func OverwriteBeginning(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("overwrite %s: %w", path, err)
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Close())
}
