package pgtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds every wait. It is long because machines are slow, and nothing is measured with it.
const patience = 2 * time.Minute

// programs are the paths of programs by name, and who may run them.
type programs struct {
	paths map[string]string
	as    *syscall.Credential // nil: as this process
}

// find looks for programs on PATH and where Debian keeps PostgreSQL's, of which the newest are taken.
func find(names ...string) (programs, error) {
	p := programs{paths: map[string]string{}}
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is a good one
	number := func(dir string) int { n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))); return n }
	slices.SortFunc(versions, func(a, b string) int { return number(b) - number(a) })
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && !strings.HasSuffix(path, "pg_wrapper") {
			p.paths[name] = path
		}
		for _, dir := range append(versions, "/usr/sbin") {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				p.paths[name] = path
				break
			}
		}
		if p.paths[name] == "" {
			return p, fmt.Errorf("pgtest: there is no %s on PATH or in /usr/lib/postgresql/*/bin: install Debian's packages postgresql and pgbouncer, as make test-all STEPS=postgres does", name)
		}
	}
	if os.Geteuid() != 0 {
		return p, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32) // the system's own are numbers
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			return p, nil
		}
	}
	return p, errors.New("pgtest: PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}

// tempDir makes a directory of the user that runs the programs. Its name is short, as that of a socket must be.
func (p programs) tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "pg")
	if err == nil && p.as != nil {
		err = os.Chown(dir, int(p.as.Uid), int(p.as.Gid))
	}
	return dir, err
}

func (p programs) command(name string, args ...string) *exec.Cmd {
	return p.prepare(exec.Command(p.paths[name], args...))
}

func (p programs) prepare(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setsid: true} // an interrupt at the terminal is the tests'
	return cmd
}

func (p programs) run(name string, args ...string) error {
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return nil
}

// A process is a program with a keeper: a shell that waits for the program, and whose watcher ends the program and removes its
// directory when the tests are gone.
type process struct {
	pid    int            // of the program
	stop   syscall.Signal // ends it at once, without waiting for its clients
	exited chan struct{}  // closed when the program has ended
}

// keep hands the program's number to descriptor 3. The watcher reads a line when the tests have taken note of the end, and the
// end of the input when they died.
const keep = `dir=$1 stop=$2; shift 2
exec 4<&0
"$@" </dev/null 3>&- 4<&- &
pid=$!
( exec 3>&-; read -r line && exit; kill -$stop $pid; while kill -0 $pid; do sleep 0.1; done; rm -rf "$dir" ) <&4 >/dev/null 2>&1 &
echo $pid >&3
exec 3>&- 4<&- </dev/null
wait $pid`

// start runs the program, whose directory is removed with it, until the signal stop.
func (p programs) start(dir string, out io.Writer, stop syscall.Signal, argv ...string) (*process, error) {
	numberRead, numberWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, numberRead.Close(), numberWrite.Close())
	}
	cmd := p.prepare(exec.Command("/bin/sh",
		append([]string{"-c", keep, "keeper", dir, strconv.Itoa(int(stop)), p.paths[argv[0]]}, argv[1:]...)...))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = lifeRead, out, out, []*os.File{numberWrite}
	err = cmd.Start()
	_, _ = numberWrite.Close(), lifeRead.Close() // the keeper has its own
	k := &process{stop: stop, exited: make(chan struct{})}
	if err == nil {
		k.pid, err = readNumber(numberRead)
		go func() {
			_ = cmd.Wait()          // however it ended
			fmt.Fprintln(lifeWrite) // the pipe holds it
			_ = lifeWrite.Close()   // the watcher has what it waits for
			close(k.exited)
		}()
	}
	return k, errors.Join(err, numberRead.Close())
}

func readNumber(from io.Reader) (int, error) {
	line, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// await waits for the event, and fails when the program ends before.
func (p *process) await(event <-chan struct{}) error {
	select {
	case <-event:
		return nil
	case <-p.exited:
		return errors.New("it ended")
	case <-time.After(patience):
		p.end()
		return fmt.Errorf("it was not ready after %s", patience)
	}
}

// ended waits for the end that was asked for.
func (p *process) ended() error {
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("process %d did not end within %s", p.pid, patience)
	}
}

// end ends the program at once, without a clean shutdown.
func (p *process) end() {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(p.pid, p.stop)
		<-p.exited
	}
}

// output is what a program wrote.
type output struct {
	mu    sync.Mutex
	text  []byte
	wait  string        // the text that is waited for, "" for none
	from  int           // where the search for it starts
	found chan struct{} // closed when it is there
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if o.wait != "" && bytes.Contains(o.text[o.from:], []byte(o.wait)) {
		o.wait = ""
		close(o.found)
	}
	return len(p), nil
}

// await returns what is closed when the text has been written from now on, however the writes are cut. One waits at a time.
func (o *output) await(text string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait, o.from, o.found = text, len(o.text), make(chan struct{})
	return o.found
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
