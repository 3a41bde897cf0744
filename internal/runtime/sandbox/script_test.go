package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// runScript is a runner that follows the protocol up to a point and then misbehaves: "stage.fault". It is confined like
// any other.
func runScript(name string) int {
	stage, fault, _ := strings.Cut(name, ".")
	s := &script{fault: fault}
	s.in, s.out = worker.Open()
	if stage == "start" {
		// The canary must pass, or there is no pool to test. Only later runners misbehave at the start.
		if s.peekProbe() {
			_, _, err := worker.Confine(s.in, s.out, noEngine)
			return exitCode(err)
		}
		return s.misbehave()
	}
	if cfg, _, err := worker.Confine(s.in, s.out, noEngine); err != nil || cfg.Probe {
		return exitCode(err)
	}
	for {
		kind, payload, err := s.in.Next(1 << 30)
		if err != nil {
			return exitCode(err)
		}
		switch kind {
		case wire.KindLoad:
			if stage == "load" {
				return s.misbehave()
			}
			(&wire.Loaded{Facts: &report.Facts{}}).Put(&s.wr)
			err = s.send()
		case wire.KindRun:
			var run *wire.Run
			if run, err = wire.ParseRun(payload); err != nil {
				break
			}
			s.nonce = run.Nonce
			if len(run.Args) > 0 && string(run.Args[0]) == `"well"` { // a control call
				err = s.answer(`"well"`)
			} else if code := s.misbehave(); code >= 0 {
				return code
			}
		}
		if err != nil {
			return exitCode(err)
		}
	}
}

func noEngine(string) (worker.Engine, error) { return &nativeEngine{}, nil }

func exitCode(err error) int {
	if err == nil || err == io.EOF {
		return 0
	}
	fmt.Fprintln(os.Stderr, "script:", err)
	return 4
}

type script struct {
	in    *wire.Reader
	out   io.Writer
	wr    wire.Builder
	fault string
	nonce uint64
}

// peekProbe reads the configuration without consuming it.
func (s *script) peekProbe() bool {
	kind, payload, err := s.in.Next(wire.MaxReady)
	if err != nil || kind != wire.KindConfig {
		os.Exit(5)
	}
	var f wire.Builder
	f.Begin(wire.KindConfig)
	f.PutRaw(payload)
	s.in = wire.NewReader(bytes.NewReader(f.Finish()))
	cfg, err := wire.ParseConfig(payload)
	return err == nil && cfg.Probe
}

func (s *script) raw(b []byte) { s.out.Write(b) }

func (s *script) send() error {
	_, err := s.out.Write(s.wr.Finish())
	return err
}

func (s *script) say(kind byte, payload string) error {
	s.wr.Begin(kind)
	s.wr.PutRaw([]byte(payload))
	return s.send()
}

func (s *script) answer(value string) error {
	(&wire.Answer{Nonce: s.nonce, Value: []byte(value)}).Put(&s.wr)
	return s.send()
}

func (s *script) ask(nonce, id uint64, op, params string) {
	(&wire.Question{Nonce: nonce, ID: id, Op: op, Params: []byte(params)}).Put(&s.wr)
	s.send()
}

// misbehave returns an exit code, or -1 to continue.
func (s *script) misbehave() int {
	switch s.fault {
	case "mute":
		time.Sleep(time.Hour)
	case "exit":
		return 0
	case "unconfined": // reports that it is ready, but no layer
		s.in.Next(wire.MaxReady)
		(&wire.Ready{Layers: map[string]string{"seccomp": "off (for a test)"}}).Put(&s.wr)
		s.send()
		time.Sleep(time.Hour)
	case "panic":
		panic("boom")
	case "deaf":
		select {}
	case "garbage":
		s.raw(bytes.Repeat([]byte("\x00garbage\xff"), 1000))
		time.Sleep(time.Hour)
	case "half":
		s.raw([]byte{200, 0, 0, 0, wire.KindAnswer, 1, 2, 3})
		return 0
	case "halfmute":
		s.raw([]byte{200, 0, 0, 0, wire.KindAnswer, 1, 2, 3})
		time.Sleep(time.Hour)
	case "hugeframe":
		s.raw(append(binary.LittleEndian.AppendUint32(nil, 1<<31), wire.KindAnswer))
		time.Sleep(time.Hour)
	case "zeroframe":
		s.raw([]byte{0, 0, 0, 0, 0})
		time.Sleep(time.Hour)
	case "flood":
		for {
			s.raw(bytes.Repeat([]byte{1, 0, 0, 0, 'z'}, 1000))
		}
	case "unknown": // a message of another version, then the answer, which is tolerated
		s.raw([]byte{3, 0, 0, 0, 'z', 1, 2})
		s.answer(`"tolerated"`)
		return -1
	case "wrongnonce":
		s.nonce++
		s.answer(`"forged"`)
		return -1
	case "twice":
		(&wire.Answer{Nonce: s.nonce, Value: []byte(`1`)}).Put(&s.wr)
		one := bytes.Clone(s.wr.Finish())
		s.raw(append(one, one...))
		return -1
	case "late": // a second answer, once the test signals that the first was taken
		taken := make(chan os.Signal, 1)
		signal.Notify(taken, syscall.SIGUSR1)
		s.answer(`1`)
		<-taken
		s.answer(`2`)
		return -1
	case "notjson":
		s.answer(`{"a":1} {"b":2}`)
		return -1
	case "notutf8":
		s.answer("\"\xff\"")
		return -1
	case "toodeep":
		s.answer(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))
		return -1
	case "bignumber":
		s.answer(`1e999`)
		return -1
	case "empty":
		s.answer("")
		return -1
	case "askwrongid":
		s.ask(s.nonce, 7, "tools", "{}")
		time.Sleep(time.Hour)
	case "askwrongnonce":
		s.ask(s.nonce+1, 1, "tools", "{}")
		time.Sleep(time.Hour)
	case "asknotjson":
		s.ask(s.nonce, 1, "tools", "{")
		time.Sleep(time.Hour)
	case "askunknown":
		s.ask(s.nonce, 1, "format_disk", "{}")
		_, payload, _ := s.in.Next(1 << 20)
		if reply, err := wire.ParseReply(payload, s.nonce, 1); err == nil && reply.Holds == wire.ReplyRefused {
			s.answer(fmt.Sprintf("%q", reply.Type+": "+reply.Message))
		}
		return -1
	case "asktwice":
		s.ask(s.nonce, 1, "call", `{"role":"a","method":"b","args":[],"kwargs":{}}`)
		s.ask(s.nonce, 2, "call", `{"role":"a","method":"b","args":[],"kwargs":{}}`)
		time.Sleep(time.Hour)
	case "ready":
		s.say(wire.KindReady, "")
		time.Sleep(time.Hour)
	case "badchange":
		change := wire.Change{Set: map[string]json.RawMessage{"k": json.RawMessage("{broken")}}
		(&wire.Answer{Nonce: s.nonce, Value: []byte("1"), Change: &change}).Put(&s.wr)
		s.send()
		return -1
	case "factsflood":
		s.say(wire.KindLoaded, strings.Repeat("x", 2*wire.MaxFacts))
		time.Sleep(time.Hour)
	case "factsbroken":
		s.say(wire.KindLoaded, "\x03\x01")
		time.Sleep(time.Hour)
	case "closepipe":
		syscall.Close(wire.AnswerFD)
		time.Sleep(time.Hour)
	case "pong": // for benchmarks: the least that a runner can do
		s.answer("1")
		return -1
	}
	return 9
}
