package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// startSpinner shows on stderr that something is under way, from a moment after the start on, so that quick calls
// stay quiet. It shows nothing where stderr is no terminal. The returned function wipes it and may be called twice.
func startSpinner(sh shell, text string) (stop func()) {
	f, ok := sh.stderr.(*os.File)
	if kind, _ := sh.env("TERM"); !ok || kind == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	bright, plain := "\x1b[36m", "\x1b[0m"
	if v, _ := sh.env("NO_COLOR"); v != "" {
		bright, plain = "", ""
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(120 * time.Millisecond)
		defer ticker.Stop()
		begin, frames := time.Now(), []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
		for i := 0; ; i++ {
			select {
			case <-done:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case <-ticker.C:
				if i >= 2 {
					fmt.Fprintf(f, "\r\x1b[K%s%c%s %s (%.0f s)", bright, frames[i%len(frames)], plain, text, time.Since(begin).Seconds())
				}
			}
		}
	}()
	return sync.OnceFunc(func() { close(done); <-ended })
}
