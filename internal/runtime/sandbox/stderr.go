package sandbox

import (
	"bytes"
	"os"
	"sync"
)

// stderrDiary keeps the beginning and the end of a process's standard output and error. Only a dying Go runtime writes
// there; a program cannot, unless it has broken out of its language.
type stderrDiary struct {
	mu   sync.Mutex
	head []byte
	tail []byte
	seen int           // bytes written in total
	done chan struct{} // closed at the end of the pipe
}

const (
	diaryHead = 8 << 10 // bytes kept of the beginning
	diaryTail = 8 << 10 // bytes kept of the end
	// More output than diaryFlood ends the runner. Stacks of a goroutine bomb have taken 40 MB and 15 s.
	diaryFlood = 256 << 10
)

// text returns the kept output. If the middle is missing, the end may begin within a line. It is then indented as a
// continuation line, so readWords does not take it for a line of the runtime.
func (d *stderrDiary) text() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := bytes.Clone(d.head)
	if d.seen > len(d.head)+len(d.tail) {
		all = append(all, "\n\t"...)
	}
	return append(all, d.tail...)
}

// add appends output and reports whether the total exceeds diaryFlood.
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

// watchStderr reads f to its end and closes it. A flood ends the runner; the cause of death is at the beginning of the
// output.
func (r *runner) watchStderr(f *os.File) {
	defer close(r.diary.done)
	defer f.Close()
	var buf []byte
	for {
		if buf == nil {
			// Allocate the buffer late: almost no runner ever writes anything.
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
