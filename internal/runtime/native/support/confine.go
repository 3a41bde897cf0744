package support

import (
	"errors"
	"io"
	"runtime"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// prSetNoNewPrivs is an option of prctl.
const prSetNoNewPrivs = 38

// confine reads the configuration, confines the process in the order in which runners do (package worker), and reports to the daemon.
func confine(in *wire.Reader, out io.Writer) (*wire.Config, error) {
	cfg, err := serve.Configure(in)
	if err != nil {
		return nil, err
	}
	if cfg.Probe {
		return nil, errors.New("an executable has no probes")
	}
	layers := map[string]string{"no_new_privs": "on"}
	serve.LimitProcess(cfg, layers)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	serve.Observe(cfg, layers)
	if _, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		layers["no_new_privs"] = "off (" + errno.Error() + ")"
	}
	layers["landlock"] = serve.Landlock(cfg.Confine)
	threads.Reserve(serve.Threads) // under landlock already, and before seccomp, which allows no more
	layers["seccomp"] = serve.LoadFilter(cfg.Confine, serve.AllThreads)
	return cfg, ready(out, layers)
}
