package postgres_test

import (
	"flag"
	"log"
	"os"
	"testing"
)

// TestMain runs more tests in parallel than there are processors, unless -parallel is set, because they mostly wait for
// servers.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "5"); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
