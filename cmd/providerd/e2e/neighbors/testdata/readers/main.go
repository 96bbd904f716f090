// Command readers reads all records of a database 20 times with a driver.
package main

import (
	"database/sql"
	"errors"
	"log"
	"os"

	_ "github.com/ncruces/go-sqlite3/driver"
	_ "modernc.org/sqlite"
)

func main() {
	for range 20 {
		database, err := sql.Open(os.Args[1], "file:"+os.Args[2]+"?mode=ro")
		must(err)
		rows, err := database.Query("SELECT * FROM providers")
		must(err)
		if !rows.Next() {
			log.Fatal("no records")
		}
		for rows.Next() {
		}
		must(rows.Err(), database.Close())
	}
}

func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}
