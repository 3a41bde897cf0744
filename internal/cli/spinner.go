package cli

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// A spinner shows on stderr that something is in progress. It appears after a short delay, so that quick calls stay
// quiet, and shows nothing unless stderr is a terminal. It is safe for concurrent use.
type spinner struct {
	mu    sync.Mutex
	words string // guarded by mu
	stop  func() // removes it; may be called twice
}

// say changes the displayed text.
func (s *spinner) say(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = words
}

func (s *spinner) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words
}

// startSpinner starts a spinner. The caller must call stop, which waits for its goroutine.
func startSpinner(sh Shell, words string) *spinner {
	s := &spinner{words: words, stop: func() {}}
	f, ok := sh.terminal(sh.Stderr)
	if !ok {
		return s
	}
	colours, done, ended := sh.colours(sh.Stderr), make(chan struct{}), make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(done); <-ended })
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
			}
			if i < 2 {
				continue
			}
			columns := 80
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				columns = w
			}
			// A line that wraps could not be erased.
			line := text.Clean(fmt.Sprintf("%s (%.0f s)", s.said(), time.Since(begin).Seconds()), max(1, columns-3))
			fmt.Fprintf(f, "\r\x1b[K%s %s", colours.Paint(text.Live, string(frames[i%len(frames)])), line)
		}
	}()
	return s
}
