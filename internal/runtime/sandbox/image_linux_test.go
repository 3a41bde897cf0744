package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
)

// buildRunner returns the program of a runner that reports this build.
func buildRunner(t testing.TB, build string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "recurgent-runner")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags",
		"-s -w -X github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire.Build="+build, "-o", out,
		"github.com/recurgentd/recurgentd/cmd/recurgent-runner")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	program, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(program)
}

// A daemon with an embedded runner starts it from a file that nobody can change, as confined as its own binary would
// be.
func TestCarriedRunner(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	own := yaegiPool(t, nil)
	h := hooks{program: buildRunner(t, "one"), build: "one"}
	t.Run("memory", func(t *testing.T) {
		p := testPool(t, forYaegi, h)
		checkCarried(t, p, own, "/memfd:recurgent-runner (deleted)")
		if _, err := p.image.file.WriteAt([]byte{0}, 0); !errors.Is(err, unix.EPERM) {
			t.Errorf("writing to the program: %v, want %v", err, unix.EPERM)
		}
		if err := p.image.file.Truncate(1); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncating the program: %v, want %v", err, unix.EPERM)
		}
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		p := testPool(t, func(o *Options) { o.Dir, o.Engine = dir, report.EngineYaegi }, h)
		checkCarried(t, p, own, dir)
		if _, err := p.image.file.WriteAt([]byte{0}, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("writing to the program: %v, want %v", err, unix.EBADF)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("the directory has %v, %v", names, err)
		}
	})
}

// checkCarried checks that the pool's runners are confined as those of own, answer, and execute a file whose path
// begins with exe.
func checkCarried(t *testing.T, p, own *Pool, exe string) {
	t.Helper()
	if got, want := fmt.Sprint(p.Status().summary()), own.Status().summary(); got != want {
		t.Errorf("the carried runner is confined as\n%s\nthe daemon's binary as\n%s", got, want)
	}
	r := p.Run(t.Context(), request(program("return 7, nil")), &fakeHost{})
	if said(r) != "value 7" {
		t.Fatalf("it answers %s", said(r))
	}
	for r := range p.live {
		dir := fmt.Sprintf("/proc/%d/", r.proc.Pid)
		if got, err := os.Readlink(dir + "exe"); err == nil && !strings.HasPrefix(got, exe) {
			t.Errorf("a runner executes %s", got)
		}
		for file, want := range map[string]string{"cmdline": "recurgent-runner\x00", "comm": "recurgent-runne\n"} {
			// A process sets its name only after it has begun to execute its program.
			for tries := 0; ; tries++ {
				got, err := os.ReadFile(dir + file)
				if err == nil && string(got) == want {
					break
				}
				if err != nil || tries == 1_000_000 {
					t.Fatalf("%s is %q, %v; want %q", file, got, err, want)
				}
				runtime.Gosched()
			}
		}
	}
}

// A runner built from other source than the daemon makes the start fail. So does a daemon without a recorded build of
// its runner.
func TestCarriedRunnerOfAnotherBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("long: builds the program of the runners")
	}
	program := buildRunner(t, "one")
	for _, build := range []string{"two", ""} {
		p, err := newPool(DefaultOptions(), hooks{program: program, build: build})
		if err == nil {
			p.Close()
		}
		if !errors.Is(err, errOtherBuild) {
			t.Errorf("a daemon of build %q starts with a runner of build one: %v", build, err)
		}
	}
}

// A pool that cannot be made leaves no image open.
func TestFailedStartClosesImages(t *testing.T) {
	open := func() (n int) {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			name, _ := os.Readlink("/proc/self/fd/" + f.Name()) // the directory's own descriptor is closed by now
			if strings.HasPrefix(name, "/memfd:recurgent-runner") {
				n++
			}
		}
		return n
	}
	before := open()
	was := embedded.LauncherFile
	defer func() { embedded.LauncherFile = was }()
	embedded.LauncherFile = filepath.Join(t.TempDir(), "missing")
	o := DefaultOptions()
	o.Native = true
	if _, err := newPool(o, hooks{program: "no program", build: "one"}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want that the launcher is missing", err)
	}
	if after := open(); after > before {
		t.Errorf("%d images are open, and %d were before", after, before)
	}
}

// If the embedded program cannot be executed, the daemon executes itself and logs that.
func TestCarriedRunnerCannotStart(t *testing.T) {
	var log bytes.Buffer
	p := testPool(t, func(o *Options) { o.Log = zerolog.New(&log) }, hooks{program: "no program", build: "one"})
	if r := p.Run(t.Context(), request(program("return 7, nil")), &fakeHost{}); said(r) != "value 7" {
		t.Errorf("it answers %s", said(r))
	}
	if !strings.Contains(log.String(), "runners are started from the daemon's own binary") ||
		!strings.Contains(log.String(), "exec format error") {
		t.Errorf("it logs %s", log.String())
	}
}

// A process gets descriptors from 0 on before the kernel resolves the path that it executes, so an image has a higher
// number than all of them.
func TestImagesAreOutOfTheWay(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	i, err := fileImage("null", f)
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	if fd := i.file.Fd(); fd < leastAside || i.path != fmt.Sprintf("/proc/self/fd/%d", fd) {
		t.Errorf("descriptor %d, path %s", fd, i.path)
	}
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the number that it had is still taken: %v", err)
	}
}
