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
		if err := read(os.Args[1], os.Args[2]); err != nil {
			log.Fatal(err)
		}
	}
}

func read(driver, path string) error {
	database, err := sql.Open(driver, "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	rows, err := database.Query("SELECT * FROM providers")
	if err != nil {
		return err
	}
	count := 0
	for rows.Next() {
		count++
	}
	if count == 0 {
		return errors.New("no records")
	}
	return errors.Join(rows.Err(), database.Close())
}
