package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

// A World is a daemon with its clients, people and surroundings.
type World struct {
	*weather
	o       app.Options
	fate    *rand.Rand // draws power cuts
	disk    *disk
	wire    *apptest.Wire
	daemon  *app.App
	clients []*client
	person  *client // operates in the default namespace
	spaces  []*space
	made    []*fact        // namespaces that the person makes and erases
	busy    sync.WaitGroup // steps of clients

	tracing bool
	mu      sync.Mutex
	http    *http.Client // reaches the daemon that serves; guarded by mu, as are the fields below
	trace   []string
	failure string // the first failure
	tally   Tally
}

// A Tally counts what has happened.
type Tally struct{ Calls, Faults, Starts, Checks int }

// A Result is the result of a life.
type Result struct {
	Failure string   // "" if everything was as expected
	Trace   []string // what was sent, received and written, if it was asked for
	Tally   Tally
}

// Live lives the steps in a world of the seed. t must not be parallel, since the seed decides the randomness of the
// whole process.
func Live(t *testing.T, seed uint64, steps []Step, tracing bool) (res Result) {
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(*testing.T) {
		newMonth()
		w := newWorld(seed, tracing)
		w.start()
		w.live(steps)
		w.stop()
		w.write(w.disk)
		res = Result{w.failure, w.trace, w.tally}
	})
	return res
}

// newMonth waits for a new month that is later than all ids that the process has made: they never go back, and days and
// months decide on caps and retention. A clock in a bubble ends in 2262, after three thousand lives.
func newMonth() {
	latest := ids.Time(ids.New("life")).UTC()
	if latest.Year() > 2250 {
		panic("the time of this process is used up: live the other seeds in another, by LIFE_SEED and LIFE_SEEDS")
	}
	time.Sleep(time.Until(time.Date(latest.Year(), latest.Month()+1, 1, 0, 0, 0, 0, time.UTC)))
}

// tokenOf returns the token of a client.
func tokenOf(name string) string { return name + strings.Repeat("0", access.MinToken) }

func newWorld(seed uint64, tracing bool) *World {
	w := &World{weather: &weather{random: rand.New(rand.NewPCG(seed, 2)), tokens: map[string]int{}},
		fate: rand.New(rand.NewPCG(seed, 3)), disk: newDisk(vfstest.New()), tracing: tracing}
	all, facts := programs()
	o := app.DefaultOptions()
	o.DataDir, o.Runners = "/simulated", 4
	o.World = app.World{Model: &model{w.weather},
		Sandbox: &box{&runtimetest.Box{Programs: all, Facts: facts}, w.weather}}
	text := ""
	for i := range clients {
		name, scopes := fmt.Sprint("client", i), "read,call"
		in := []string{"default", "acme"}[i%2]
		text += fmt.Sprintf("%s %s namespace=%s scopes=%s\n", name, tokenOf(name), in, scopes)
		if i < 2 {
			w.spaces = append(w.spaces, newSpace(in))
		}
		w.clients = append(w.clients, &client{name: name, token: tokenOf(name), space: w.spaces[i%2],
			pace:  time.Duration(i+1) * 100 * time.Microsecond,
			steps: make(chan Step, manySteps)})
	}
	for _, s := range w.spaces {
		name := "person-" + s.name
		text += fmt.Sprintf("%s %s namespace=%s\n", name, tokenOf(name), s.name)
	}
	w.person = personOf(w.spaces[0])
	w.person.steps = make(chan Step, manySteps)
	for range 3 {
		w.made = append(w.made, &fact{want: gone})
	}
	tokens, err := access.ParseTokens([]byte(text))
	if err != nil {
		panic(err)
	}
	o.Auth = tokens
	w.o = o
	return w
}

// clients is the number of clients.
const clients = 8

// manySteps is the number of steps that can wait for one client.
const manySteps = 1 << 12

// personOf returns the person who operates in the namespace.
func personOf(s *space) *client {
	return &client{name: "person-" + s.name, token: tokenOf("person-" + s.name), space: s}
}

func newSpace(name string) *space {
	s := &space{name: name, policy: map[string]*fact{}, audits: map[string]bool{}, seen: map[string]bool{},
		answers: map[string]int{}, sequences: map[string]int{}, dropped: map[string]bool{}}
	for _, f := range fields {
		s.policy[f.name] = &fact{want: f.value}
	}
	return s
}

// fail records the first failure.
func (w *World) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = time.Now().UTC().Format(time.DateTime) + ": " + fmt.Sprintf(format, args...)
	}
}

// failed reports whether a failure was recorded.
func (w *World) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// line adds a line to the trace.
func (w *World) line(format string, args ...any) {
	if !w.tracing {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, time.Now().UTC().Format("02T15:04:05.000000000 ")+fmt.Sprintf(format, args...))
}

// write adds the operations of a disk to the trace.
func (w *World) write(d *disk) {
	if w.tracing {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.trace = append(w.trace, d.journal()...)
	}
}

// start starts a daemon on the disk. While the disk is full, it tries again, as a supervisor does.
func (w *World) start() {
	w.count(func(t *Tally) { t.Starts++ })
	for {
		w.wire = apptest.NewWire()
		w.o.World.Listener, w.o.World.Files = w.wire, w.disk
		d, err := app.New(context.Background(), w.o)
		if err == nil {
			w.mu.Lock()
			w.daemon, w.http = d, connect(w.wire)
			w.mu.Unlock()
			d.Start()
			return
		}
		w.line("start: %v", err)
		if !w.disk.isFull() {
			w.fail("the daemon does not start: %v", err)
			return
		}
		time.Sleep(10 * time.Second)
	}
}

// stop ends the daemon in time.
func (w *World) stop() {
	if w.daemon == nil {
		return
	}
	w.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), app.StopTime)
	defer cancel()
	if err := w.daemon.Stop(ctx); err != nil && !w.disk.isFull() {
		w.fail("the daemon does not stop: %v", err)
	}
	w.wire.Cut()
	w.end()
}

// end waits until the daemon's goroutines have ended.
func (w *World) end() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.daemon.Stop(now) // its disk may be gone
	_ = w.daemon.Stop(context.Background())
	w.http.CloseIdleConnections()
	w.daemon = nil
}

// cutPower runs meanwhile and cuts the power after n more operations or syncs of the disk, at the latest after a
// minute. Then another daemon starts on the disk that is left.
func (w *World) cutPower(n int, syncs bool, meanwhile func()) {
	went := make(chan struct{}, 1)
	wire := w.wire
	cut := func() {
		wire.Cut()
		went <- struct{}{}
	}
	w.disk.powerOff(n, syncs, cut)
	meanwhile()
	select {
	case <-went:
	case <-time.After(time.Minute):
		w.disk.powerOffNow(cut)
	}
	w.line("the power goes")
	w.end()
	w.write(w.disk)
	w.disk = w.disk.after(w.fate)
	w.start()
}

// restart stops the daemon and starts another one.
func (w *World) restart() {
	w.stop()
	w.start()
}

func (w *World) count(do func(*Tally)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(&w.tally)
}
