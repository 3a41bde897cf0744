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

// patience is the timeout of every wait. It is long for slow machines; no test measures it.
const patience = 2 * time.Minute

// programs are the paths of programs by name, and the user that runs them.
type programs struct {
	paths map[string]string
	as    *syscall.Credential // nil means the user of this process
}

// find looks for programs on PATH and in Debian's directories for PostgreSQL, the newest version first. It returns an
// error if one is missing.
func find(names ...string) (programs, error) {
	p := programs{paths: map[string]string{}}
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
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
			uid, _ := strconv.ParseUint(u.Uid, 10, 32) // always numbers on Linux
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			return p, nil
		}
	}
	return p, errors.New("pgtest: PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}

// tempDir creates a directory that belongs to the user of the programs. Its name is short, because the path of a socket
// is limited.
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
	// so an interrupt from the terminal only reaches the tests
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setsid: true}
	return cmd
}

func (p programs) run(name string, args ...string) error {
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return nil
}

// A process is a program with a keeper, a shell that waits for the program. A watcher in the shell ends the program and
// removes its directory if the test process dies.
type process struct {
	pid    int            // of the program
	stop   syscall.Signal // ends the program at once, without waiting for its clients
	exited chan struct{}  // closed when the program has ended
}

// keep writes the program's pid to descriptor 3. The watcher reads standard input: a line means that the tests know
// that the program has ended, and end of file means that the tests died.
const keep = `dir=$1 stop=$2; shift 2
exec 4<&0
"$@" </dev/null 3>&- 4<&- &
pid=$!
( exec 3>&-; read -r line && exit; kill -$stop $pid; while kill -0 $pid; do sleep 0.1; done; rm -rf "$dir" ) <&4 >/dev/null 2>&1 &
echo $pid >&3
exec 3>&- 4<&- </dev/null
wait $pid`

// start runs the program. dir is removed if the tests die. stop is the signal that ends the program.
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
	_, _ = numberWrite.Close(), lifeRead.Close() // the keeper has its own copies
	k := &process{stop: stop, exited: make(chan struct{})}
	if err == nil {
		k.pid, err = readNumber(numberRead)
		go func() {
			_ = cmd.Wait()          // the exit status does not matter
			fmt.Fprintln(lifeWrite) // fits into the pipe's buffer
			_ = lifeWrite.Close()   // the watcher has its line
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

// await waits for the event. It returns an error if the program ends first or takes longer than patience.
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

// ended waits until the program has ended, after it was signaled.
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

// output collects what a program writes.
type output struct {
	mu    sync.Mutex
	text  []byte
	wait  string        // the awaited text; "" if nobody waits
	from  int           // offset where the search starts
	found chan struct{} // closed when the text was found
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

// await returns a channel that is closed once the text is written after this call, even if it is split between writes.
// Only one caller may wait at a time.
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
