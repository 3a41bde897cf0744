package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/app"
)

func serveCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:        "serve",
		SuggestFor: []string{"start", "run", "daemon", "up"},
		Short:      "Start the daemon",
		Long: `Start the daemon. It prints one line with its address on stdout once it is ready, logs to stderr,
and stops cleanly on SIGTERM, SIGINT or SIGHUP within 10 seconds; a second signal ends it at once.
With --auth-tokens-file or --tls-cert and no terminal, SIGHUP reads these files again instead; a change
is found without it, too, within three seconds.

Flags override environment variables, which override the configuration file. OPENAI_API_KEY is
read from the environment or the file only. Without a key and a base URL the daemon answers from an embedded
demo recording, offline.

Exit status: 0 after a clean stop, 1 when it could not start or stop cleanly, 2 for a wrong command
line or setting.`,
		Example: `  recurgentd serve
  OPENAI_API_KEY=sk-... recurgentd serve
  recurgentd serve --openai-base-url http://127.0.0.1:11434/v1 --model qwen3-coder`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := loadOptions(ServeScope, cmd.Flags(), sh.Env)
			if err != nil {
				return exitWith(ExitUsage, fmt.Errorf("cannot start: %w", err))
			}
			return serve(cmd.Context(), sh, o)
		},
	}
	addFlags(ServeScope, c.Flags())
	return c
}

// serve runs the daemon until a signal or a failure ends it.
func serve(ctx context.Context, sh Shell, o Options) error {
	// Catch signals before anything is opened, so that an early one is not lost.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	// Closing the terminal stops the daemon cleanly; nohup keeps it alive.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Catch SIGPIPE: the reader of the log may exit first, and a write to its closed pipe must not end the daemon.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	// The live heap is a few MiB and each call leaves garbage: at the default the collector runs dozens of times a
	// second.
	if _, set := sh.Env("GOGC"); !set {
		debug.SetGCPercent(400)
	}
	o.Logger, o.Now = newLogger(o, sh), sh.Clock
	o.CompilerDir, o.GoCache, o.Env = sh.CompilerDir, sh.GoCache, sh.Env
	limitMemory(o.Logger, memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem))
	d, err := app.New(ctx, o.Options)
	if err != nil {
		code := ExitFailed
		var bad *app.OptionError
		if errors.As(err, &bad) {
			code = ExitUsage
		}
		return exitWith(code, fmt.Errorf("cannot start: %w", err))
	}
	d.Start()
	fmt.Fprint(sh.Stdout, firstScreen(d.URL(), o, commandName(os.Args[0])))

	notify(sh.Env, "READY=1")
	if err = untilStopped(d, signals); err == nil {
		notify(sh.Env, "STOPPING=1")
	}
	// Stop in a goroutine, so that a second signal can end the process at once.
	stopped := make(chan error, 1)
	go func() { stopped <- sh.stop(d) }()
	select {
	case late := <-stopped:
		return exitWith(ExitFailed, errors.Join(err, late))
	case <-signals:
		// Acknowledged calls are already durable. Others are lost, as with SIGKILL.
		return exitWith(ExitFailed, errors.New("second signal: ended at once"))
	}
}

// untilStopped waits for a signal that stops the daemon, and returns nil, or for a failure of the daemon. SIGHUP
// reloads files instead if there is no terminal and files can be reloaded.
func untilStopped(d *app.App, signals <-chan os.Signal) error {
	reloads := d.Reloads() && !hasTerminal()
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGHUP || !reloads {
				return nil
			}
			d.Reload()
		case err := <-d.Failed():
			return err
		}
	}
}

// hasTerminal reports whether the process has a controlling terminal, whose closing sends SIGHUP.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = f.Close() // it was only opened
	return true
}

// stop ends the daemon within the time limit of a clean stop.
func (sh Shell) stop(d *app.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(sh.StopTime, app.StopTime))
	defer cancel()
	return d.Stop(ctx)
}

// commandName returns how to start this binary again: by its name if the shell finds it, otherwise by its path as
// given.
func commandName(arg0 string) string {
	name := filepath.Base(arg0)
	found, err := exec.LookPath(name)
	self, err2 := os.Executable()
	if err == nil && err2 == nil && found == self {
		return name
	}
	return arg0
}

// firstScreen returns the line that announces the daemon, followed by commands to try if it uses a recording.
func firstScreen(url string, o Options, self string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "recurgentd is ready on %s\n", url)
	if o.Provider != "replay" {
		return b.String()
	}
	to := ""
	if url != defaultOptions().URL {
		to = " --url " + url
	}
	if o.Recording != "" {
		fmt.Fprintf(&b, "\nNo model is asked: programs come from the recording %s.\n", o.Recording)
		return b.String()
	}
	token, header := "", ""
	if o.Guarded() {
		token = "  export RECURGENT_TOKEN=...   # an access token that this daemon takes\n"
		header = ` -H "Authorization: Bearer $RECURGENT_TOKEN"`
	}
	fmt.Fprintf(&b, `
No model is asked: programs come from the embedded demo recording.
Try, in another terminal:

%[4]s  %[1]s call%[2]s calculator add 2 3
  %[1]s call%[2]s calculator solve "2x + 5 = 17"
  %[1]s call%[2]s text_tools slugify "Crème Brûlée: 10 Tips"
  curl%[5]s %[3]s/v1/tools/calculator/methods/add

and in a browser the console, which shows what happens:

  %[3]s/ui/

The recording has programs for these methods:

%[6]s
For any method at all, give it a model:

  OPENAI_API_KEY=sk-... %[1]s serve
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 %[1]s serve --model qwen3-coder
`, self, to, url, token, header, demoMethods())
	return b.String()
}

// demoColumns is the maximum line length of demoMethods.
const demoColumns = 100

// demoMethods lists the methods of the demo recording: role.method, followed by the names of a role's other methods.
func demoMethods() string {
	var b strings.Builder
	line := ""
	for _, r := range app.Demo() {
		item := r.Role + "." + strings.Join(r.Methods, ", ")
		if line != "" && len(line)+len("; ")+len(item) > demoColumns {
			fmt.Fprintf(&b, "  %s;\n", line)
			line = ""
		}
		line = strings.TrimPrefix(line+"; "+item, "; ")
	}
	fmt.Fprintf(&b, "  %s\n", line)
	return b.String()
}

// notify reports the daemon's state to the service manager, if one started it (sd_notify(3)). It ignores failures,
// because the service manager has its own time limit.
func notify(env func(string) (string, bool), state string) {
	path, _ := env("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	// A leading @ selects the abstract namespace.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(state))
}

// Bounds of the daemon's memory limit (GOMEMLIMIT). The limit is soft: near it the garbage collector works harder.
const (
	memoryShare = 0.5 // of the available memory; the rest is for runners
	leastMemory = 128 << 20
	mostMemory  = 1 << 30
)

// limitMemory sets the limit from the available memory that provider reports, unless GOMEMLIMIT is set. serve lets
// garbage grow to four times the live heap; without a limit, a daemon in a container could be killed for exceeding the
// container's memory.
func limitMemory(log zerolog.Logger, provider memlimit.Provider) {
	bounded := func() (uint64, error) {
		n, err := provider()
		return min(n, uint64(mostMemory/memoryShare)), err
	}
	n, err := memlimit.Set(memlimit.WithProvider(bounded), memlimit.WithRatio(memoryShare),
		memlimit.WithMin(leastMemory))
	log.Debug().Err(err).Int64("bytes", n).Msg("memory limit of the daemon")
}
