package postgres_test

import (
	"flag"
	"log"
	"os"
	"testing"
)

// TestMain lets more tests run at a time than there are processors, unless somebody asks for another number: they mostly
// wait for servers.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "5"); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
