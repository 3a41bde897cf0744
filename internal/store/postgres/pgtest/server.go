package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// superuser is the role of all connections in tests.
const superuser = "postgres"

// A server is one PostgreSQL server with its files. It may be stopped.
type server struct {
	programs programs
	settings []string
	dir      string // its files and its socket
	output   *output
	process  *process // nil if it does not run
}

func newServer(settings []string) (*server, error) {
	p, err := find("initdb", "postgres", "psql", "pg_basebackup", "pg_dump")
	if err != nil {
		return nil, err
	}
	dir, err := p.tempDir()
	if err != nil {
		return nil, err
	}
	return &server{programs: p, settings: settings, dir: dir, output: &output{}}, nil
}

func (s *server) data() string   { return filepath.Join(s.dir, "data") }
func (s *server) socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

func (s *server) initialize() error {
	return s.programs.run("initdb", "-D", s.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync", "--no-instructions")
}

// copyOf makes s a standby of the primary. Its old data is removed.
func (s *server) copyOf(primary *server) error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	from := fmt.Sprintf("host=%s user=%s application_name=standby", primary.dir, superuser)
	return s.programs.run("pg_basebackup", "-D", s.data(), "-d", from, "-R", "-X", "stream", "-c", "fast", "--no-sync")
}

// start starts the server and returns once it answers queries.
func (s *server) start() error {
	args := []string{"postgres", "-D", s.data(), "-k", s.dir}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	ready := s.output.await("database system is ready to accept")
	p, err := s.programs.start(s.dir, s.output, syscall.SIGQUIT, args...)
	if err != nil {
		return err
	}
	if err := p.await(ready); err != nil {
		return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, s.output)
	}
	s.process = p
	return nil
}

func (s *server) running() bool { return s.process != nil }

// kill kills the postmaster and its children. Children left alone would finish their work.
func (s *server) kill() error {
	if !s.running() {
		return errors.New("pgtest: the server does not run")
	}
	p := s.process
	s.process = nil
	// Once stopped, it cannot start new children.
	_ = syscall.Kill(p.pid, syscall.SIGSTOP)
	for _, child := range childrenOf(p.pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	return p.ended()
}

func (s *server) restart() error {
	if s.running() {
		p := s.process
		s.process = nil
		_ = syscall.Kill(p.pid, syscall.SIGINT) // fast shutdown
		if err := p.ended(); err != nil {
			return err
		}
	}
	return s.start()
}

// end stops the server if it runs, and removes its files.
func (s *server) end() {
	if s.running() {
		s.process.end()
		s.process = nil
	}
	_ = os.RemoveAll(s.dir) // below the temporary directory
}

// sql runs each text as its own statement, all in one session.
func (s *server) sql(database string, texts ...string) (string, error) {
	args := []string{"-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-U", superuser, "-d", database}
	for _, t := range texts {
		args = append(args, "-c", t)
	}
	cmd := s.programs.command("psql", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql %q: %w: %s", texts, err, errs.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// dump returns a backup of a database as SQL. env is added to the environment of pg_dump.
func (s *server) dump(database string, env ...string) ([]byte, error) {
	cmd := s.programs.command("pg_dump", "-h", s.dir, "-U", superuser, "-d", database)
	cmd.Env = append(cmd.Env, env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("pg_dump: %w: %s", err, errs.Bytes())
	}
	return out, nil
}

// load runs SQL that dump returned.
func (s *server) load(database string, sql []byte) error {
	cmd := s.programs.command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-U", superuser, "-d", database)
	cmd.Stdin = bytes.NewReader(sql)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("load a dump: %w: %s", err, out)
	}
	return nil
}

// childrenOf returns the processes with that parent.
func childrenOf(parent int) (out []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, file := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if stat := statOf(pid); err == nil && len(stat) > 1 && stat[1] == strconv.Itoa(parent) {
			out = append(out, pid)
		}
	}
	return out
}

// ticksOf returns the processor time, in clock ticks, of a process and of its children that have ended.
func ticksOf(pid int) (sum int) {
	if stat := statOf(pid); len(stat) > 14 {
		for _, field := range stat[11:15] {
			n, _ := strconv.Atoi(field) // always numbers
			sum += n
		}
	}
	return sum
}

// statOf returns the fields of /proc/<pid>/stat after the process name, which may contain any character: state, parent
// and so on. It returns nil if the process has ended.
func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}
