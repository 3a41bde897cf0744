package sandbox

import (
	"bytes"
	"os"
	"sync"
)

// stderrDiary keeps the beginning and the end of what a process wrote to its standard output and error. Only the Go
// runtime writes there, when it dies; a program has no way to it unless it broke out of its language.
type stderrDiary struct {
	mu   sync.Mutex
	head []byte
	tail []byte
	seen int
	done chan struct{} // closed at the end of the pipe
}

const (
	diaryHead = 8 << 10
	diaryTail = 8 << 10
	// from here on it is a flood: stacks of a goroutine bomb have been seen to take 40 MB and 15 s
	diaryFlood = 256 << 10
)

// text returns what is kept. Where the middle is missing, the end may begin within a line, and is written as one that goes on.
func (d *stderrDiary) text() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := bytes.Clone(d.head)
	if d.seen > len(d.head)+len(d.tail) {
		all = append(all, "\n\t"...)
	}
	return append(all, d.tail...)
}

func (d *stderrDiary) add(p []byte) (flood bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen += len(p)
	if n := min(len(p), diaryHead-len(d.head)); n > 0 {
		d.head = append(d.head, p[:n]...)
		p = p[n:]
	}
	d.tail = append(d.tail, p...)
	if over := len(d.tail) - diaryTail; over > 0 {
		d.tail = append(d.tail[:0], d.tail[over:]...)
	}
	return d.seen > diaryFlood
}

// watchStderr reads to the end. A flood ends the runner; what it died of stands at the beginning.
func (r *runner) watchStderr(f *os.File) {
	defer close(r.diary.done)
	defer f.Close()
	var buf []byte
	for {
		if buf == nil {
			// Waiting needs no buffer: almost no runner ever says anything.
			if !awaitReadable(f) {
				return
			}
			buf = make([]byte, 4<<10)
		}
		n, err := f.Read(buf)
		if n > 0 && r.diary.add(buf[:n]) {
			r.kill("flood")
		}
		if err != nil {
			return
		}
	}
}
