package postgrestest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const killed = syscall.SIGKILL

// PatroniNode is a PostgreSQL server and the Patroni that manages it.
type PatroniNode struct {
	Name string

	t              testing.TB
	home           home
	user, password string
	port, restPort int
	patroni        *process
}

func (p *Patroni) newNode(t testing.TB, name string) *PatroniNode {
	t.Helper()
	binaries, err := findBinaries()
	check(t, "start Patroni", err)
	dir, err := newHome()
	check(t, "start Patroni", err)
	n := &PatroniNode{
		Name: name, t: t, home: dir, user: p.User, password: p.Password, port: freePort(t), restPort: freePort(t),
	}
	text, err := json.Marshal(n.settings(p, binaries))
	check(t, "start Patroni", err)
	check(t, "start Patroni", n.home.write(n.path("patroni.yml"), string(text)))
	t.Cleanup(n.close)
	return n
}

// settings returns the settings of Patroni. They are encoded as JSON, which is valid YAML.
func (n *PatroniNode) settings(p *Patroni, binaries string) map[string]any {
	user := map[string]any{"username": p.User, "password": p.Password}
	return map[string]any{
		"scope": "providerd", "name": n.Name,
		"restapi": map[string]any{
			"listen": "127.0.0.1:" + strconv.Itoa(n.restPort), "connect_address": "127.0.0.1:" + strconv.Itoa(n.restPort),
		},
		"etcd": map[string]any{"host": "127.0.0.1:" + strconv.Itoa(p.etcdPort)},
		"bootstrap": map[string]any{
			"dcs": map[string]any{
				"ttl": patroniTTL, "loop_wait": patroniLoopWait, "retry_timeout": patroniRetryTimeout,
				"synchronous_mode": true, "synchronous_mode_strict": true,
				"postgresql": map[string]any{
					"use_pg_rewind": true,
					"parameters":    map[string]any{"max_connections": 200, "wal_keep_size": "512MB"},
				},
			},
			"initdb": []any{
				map[string]any{"encoding": "UTF8"}, map[string]any{"locale": "C.UTF-8"}, "data-checksums", "no-sync",
			},
		},
		"postgresql": map[string]any{
			"listen": n.Address(), "connect_address": n.Address(), "data_dir": n.path("data"), "bin_dir": binaries,
			"pgpass":         n.path("pgpass"),
			"authentication": map[string]any{"superuser": user, "replication": user, "rewind": user},
			"parameters":     map[string]any{"unix_socket_directories": "", "dynamic_shared_memory_type": "mmap"},
			"pg_hba": []string{
				fmt.Sprintf("host all %s 127.0.0.1/32 scram-sha-256", p.User),
				fmt.Sprintf("host replication %s 127.0.0.1/32 scram-sha-256", p.User),
			},
			"remove_data_directory_on_rewind_failure":     true,
			"remove_data_directory_on_diverged_timelines": true,
		},
	}
}

func (n *PatroniNode) path(name string) string { return filepath.Join(n.home.dir, name) }

// Address returns the host and port of PostgreSQL.
func (n *PatroniNode) Address() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

// URL returns the URL of a database on this node.
func (n *PatroniNode) URL(database string) string {
	return databaseURL(n.user, n.password, n.Address(), database)
}

// start starts Patroni, which starts PostgreSQL.
func (n *PatroniNode) start(t testing.TB) {
	t.Helper()
	var err error
	n.patroni, err = n.home.start(killed, "patroni", n.path("patroni.yml"))
	check(t, "start Patroni; if it is missing, run make patroni", err)
}

// running reports whether Patroni or its PostgreSQL is left.
func (n *PatroniNode) running() bool { return n.patroni != nil && !n.patroni.ended() }

// KillPostgreSQL sends SIGKILL to all processes of PostgreSQL. Patroni keeps running.
func (n *PatroniNode) KillPostgreSQL() {
	n.t.Helper()
	n.check("kill PostgreSQL", n.signalPostgreSQL(killed))
}

// Kill sends SIGKILL to Patroni and PostgreSQL, and returns when none of their processes is left.
func (n *PatroniNode) Kill() {
	n.t.Helper()
	if !n.running() {
		return
	}
	ctx, cancel := waiting(n.t)
	defer cancel()
	// While it is stopped, Patroni cannot restart PostgreSQL.
	n.check("kill", errors.Join(n.patroni.signal(syscall.SIGSTOP), n.signalPostgreSQL(killed),
		n.patroni.signalAll(killed), n.patroni.wait(ctx)))
}

// Freeze sends SIGSTOP to Patroni and PostgreSQL.
func (n *PatroniNode) Freeze() {
	n.t.Helper()
	n.FreezePatroni()
	n.check("freeze PostgreSQL", n.signalPostgreSQL(syscall.SIGSTOP))
}

// FreezePatroni sends SIGSTOP to Patroni. PostgreSQL keeps running, and stays writable if it is the primary.
func (n *PatroniNode) FreezePatroni() {
	n.t.Helper()
	n.check("freeze Patroni", n.patroni.signalAll(syscall.SIGSTOP))
}

// Thaw resumes Patroni and PostgreSQL. It does nothing if they do not run.
func (n *PatroniNode) Thaw() {
	n.t.Helper()
	if !n.running() {
		return
	}
	n.check("thaw", errors.Join(n.signalPostgreSQL(syscall.SIGCONT), n.patroni.signalAll(syscall.SIGCONT)))
}

func (n *PatroniNode) close() {
	n.t.Helper()
	n.Kill()
	n.check("close", errors.Join(removeSharedMemory(n.path("data")), n.home.remove()))
}

func (n *PatroniNode) check(what string, err error) {
	n.t.Helper()
	check(n.t, what+" of "+n.Name, err)
}

// signalPostgreSQL sends a signal to all processes of PostgreSQL, which are not children of Patroni.
func (n *PatroniNode) signalPostgreSQL(signal syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(n.path("data"), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find PostgreSQL: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	id, err := strconv.Atoi(line)
	if err != nil {
		return fmt.Errorf("find PostgreSQL: %w", err)
	}
	if !n.owns(id) {
		return nil
	}
	return signalTree(id, signal, func(signal syscall.Signal) error {
		if err := syscall.Kill(id, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s: %w", signal, err)
		}
		return nil
	})
}

// owns reports whether a process runs in the data directory. The PID file of a killed server is stale.
func (n *PatroniNode) owns(id int) bool {
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(id), "cwd"))
	return err == nil && dir == n.path("data")
}
