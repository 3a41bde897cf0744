package daemon

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/sampled"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A watched is a directory elsewhere. Whatever is opened, changed or removed in it is noticed.
type watched struct {
	dir string
	fd  int
}

// watch returns a new directory, to be closed: a user has few inotify instances.
func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{dir: t.TempDir()}
	var err error
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watched) close() { _ = unix.Close(w.fd) }

// begin has what was put there noticed from now on.
func (w *watched) begin(t *testing.T) {
	t.Helper()
	if err := filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_, err = unix.InotifyAddWatch(w.fd, path,
				unix.IN_OPEN|unix.IN_ACCESS|unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.seen()
}

// seen returns what was noticed since.
func (w *watched) seen() []byte {
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if n <= 0 || err != nil {
			return bytes.Trim(all, "\x00")
		}
		all = append(all, buf[:n]...)
	}
}

// served starts a daemon on the directory, uses it, and stops it. It returns what it said, and whether it served or
// refused to start.
func served(t *testing.T, d *rig.Daemon, dir string) (said string, ready bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir},
		d.Args...)...)
	errs := &rig.Buffer{}
	cmd.Env, cmd.Dir, cmd.Stderr = d.Env, t.TempDir(), errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(rig.Patience, func() { _ = cmd.Process.Kill() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "recurgentd is ready on "); ok {
			ready = true
			use(t, url)
			_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended says so below
		}
	}
	err = cmd.Wait()
	if !stop.Stop() {
		t.Errorf("it hangs:\n%s", errs)
	}
	if ready && err != nil {
		t.Errorf("it ended with %v:\n%s", err, errs)
	}
	return errs.String(), ready
}

var fileIDs, sessionIDs = regexp.MustCompile(`file_[0-9a-z]{26}`), regexp.MustCompile(`sess_[0-9a-z]{26}`)

// use asks for whatever is stored. What is asked for may be gone, or damaged.
func use(t *testing.T, url string) {
	t.Helper()
	c := &http.Client{Timeout: rig.Patience}
	ask := func(method, path, body string) []byte {
		r, err := http.NewRequest(method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(r)
		if err != nil && path == "/v1/maintenance/export" {
			return nil // it is cut off at what it cannot hold
		}
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return nil
		}
		defer resp.Body.Close()
		var data bytes.Buffer
		_, _ = data.ReadFrom(resp.Body) // a damaged file is cut off
		return data.Bytes()
	}
	for _, path := range []string{"/v1/sessions", "/v1/tools", "/v1/files", "/v1/calls", "/v1/connections",
		"/v1/policy", "/v1/maintenance/audit", "/v1/maintenance/export", "/v1/tools/worker/methods/double",
		"/v1/reports/trends"} {
		list := ask(http.MethodGet, path, "")
		for _, id := range fileIDs.FindAll(list, 4) {
			ask(http.MethodGet, "/v1/files/"+string(id)+"/content", "")
		}
		for _, id := range sessionIDs.FindAll(list, 4) {
			ask(http.MethodGet, "/v1/sessions/"+string(id)+"/history", "")
			if path == "/v1/sessions" { // too few calls to prove a program anew
				ask(http.MethodPost, "/v1/sessions/"+string(id)+"/calls", `{"method":"double","args":[4]}`)
			}
		}
	}
}

// namesBelow lists the files, or the directories, below a directory.
func namesBelow(t *testing.T, dir string, dirs bool) (names []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && e.IsDir() == dirs && rel != "." && rel != "unfinished" {
			names = append(names, rel)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// replacements are what stands in the place of a file: kept is a copy of it elsewhere.
var replacements = map[string]func(file, kept string) error{
	"other content": func(file, _ string) error {
		return os.WriteFile(file, []byte("\x7fELF planted by somebody\n"),
			0o777)
	},
	"no content": func(file, _ string) error { return os.WriteFile(file, nil, 0o600) },
	"a link":     func(file, kept string) error { return os.Symlink(kept, file) },
	"a pipe":     func(file, _ string) error { return unix.Mkfifo(file, 0o600) },
	"a directory": func(file, _ string) error {
		return errors.Join(os.Mkdir(file, 0o700), os.WriteFile(filepath.Join(file, "x"), []byte("x"), 0o600))
	},
}

// replaced copies the directory, and puts something else in the place of some of its files. The originals are kept
// elsewhere.
func replaced(t *testing.T, from string, names []string, elsewhere *watched,
	with func(file, kept string) error) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	if out, err := exec.Command("cp", "-a", from, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range names {
		kept := filepath.Join(elsewhere.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.RemoveAll(kept),
			os.Rename(filepath.Join(dir, name), kept), with(filepath.Join(dir, name), kept)); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere.begin(t)
	return dir
}

// A daemon on a directory in which something else stands in the place of a file, or of all of them, serves, or says in
// a line which file it is and what that is. It reads, changes and removes nothing by way of a link, waits for no pipe,
// and lets no copied or planted executable answer.
func TestReplacedFiles(t *testing.T) {
	t.Parallel()
	d, _ := compilingDaemon(t)
	d.Stop(syscall.SIGTERM)
	from := d.State()
	files := namesBelow(t, from, false)
	groups := [][]string{files}
	if !testing.Short() { // long: starts a daemon for each
		archive := false // one of a compiled package stands for all: each would be a daemon
		for _, name := range files {
			if filepath.Ext(name) != ".a" || !archive {
				groups = append(groups, []string{name})
			}
			archive = archive || filepath.Ext(name) == ".a"
		}
	}
	for kind, with := range sampled.Map(replacements, 2) {
		for _, names := range groups {
			check(t, d, fmt.Sprint(kind, " for ", names),
				func(elsewhere *watched) string { return replaced(t, from, names, elsewhere, with) })
		}
	}
}

// So it is where a link to a directory elsewhere, a file or a pipe stands in the place of a directory.
func TestReplacedDirectories(t *testing.T) {
	t.Parallel()
	d, _ := compilingDaemon(t)
	d.Stop(syscall.SIGTERM)
	from := d.State()
	tops := slices.DeleteFunc(namesBelow(t, from, true), func(name string) bool {
		return testing.Short() &&
			strings.Contains(name, "/")
	})
	for kind, with := range map[string]func(file, kept string) error{"a link": replacements["a link"],
		"a pipe": replacements["a pipe"]} {
		if kind == "a pipe" && testing.Short() {
			continue
		}
		for _, name := range sampled.Of(tops, 3) {
			check(t, d, fmt.Sprint(kind, " for the directory ", name),
				func(elsewhere *watched) string { return replaced(t, from, []string{name}, elsewhere, with) })
		}
	}
}

// check has a daemon serve on a directory that was made, and looks at what it did.
func check(t *testing.T, d *rig.Daemon, what string, made func(elsewhere *watched) string) {
	t.Helper()
	elsewhere := watch(t)
	defer elsewhere.close()
	dir := made(elsewhere)
	defer os.RemoveAll(dir) // it holds all compiled packages
	before := namesBelow(t, elsewhere.dir, false)
	elsewhere.seen()
	said, ready := served(t, d, dir)
	if seen := elsewhere.seen(); len(seen) > 0 {
		t.Errorf("%.200s: elsewhere was touched: %q\n%s", what, seen, said)
	}
	if after := namesBelow(t, elsewhere.dir, false); !slices.Equal(before, after) {
		t.Errorf("%.200s: elsewhere were %v and are %v", what, before, after)
	}
	if strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
		t.Errorf("%.200s: it broke down:\n%s", what, said)
	}
	if !ready && !strings.Contains(said, "recurgentd uses no such thing in its place") &&
		!strings.Contains(said, "schema version") {
		t.Errorf("%.200s: it did not start, and says\n%s", what, said)
	}
}
