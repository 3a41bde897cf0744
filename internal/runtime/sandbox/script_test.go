package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// runScript is a runner that keeps to the protocol up to a point and then misbehaves: "stage.fault". It is
// confined like any other.
func runScript(name string) int {
	stage, fault, _ := strings.Cut(name, ".")
	// A probe must pass, or there is no pool to test: only later runners misbehave at the start.
	landlockFirst()
	c := &childLoop{in: frameReader{src: fdFile(0)}, out: fdFile(answerFD)}
	s := &script{c: c, fault: fault}
	if stage == "start" {
		if s.peekProbe() {
			return exitCode(c.start(noEngine))
		}
		return s.misbehave(nil)
	}
	if err := c.start(noEngine); err != nil || c.cfg.Probe {
		return exitCode(err)
	}
	for {
		kind, payload, err := c.in.next(1 << 30)
		if err != nil {
			return exitCode(err)
		}
		switch kind {
		case kindLoad:
			if stage == "load" {
				return s.misbehave(nil)
			}
			c.loaded = true
			c.wr.begin(kindLoaded)
			c.wr.b = append(c.wr.b, `{"facts":{"imports":null}}`...)
			if err := c.send(); err != nil {
				return exitCode(err)
			}
		case kindRun:
			o, err := parseRun(payload)
			if err != nil {
				return exitCode(err)
			}
			s.nonce = o.nonce
			if len(o.in.Args) > 0 && string(o.in.Args[0]) == `"well"` { // a control call
				appendAnswer(&c.wr, &answer{nonce: s.nonce, value: []byte(`"well"`)})
				if err := c.send(); err != nil {
					return exitCode(err)
				}
				continue
			}
			if code := s.misbehave(o); code >= 0 {
				return code
			}
		}
	}
}

func noEngine(string) (Engine, error) { return &nativeEngine{}, nil }

func exitCode(err error) int {
	if err == nil || err == io.EOF {
		return 0
	}
	fmt.Fprintln(os.Stderr, "script:", err)
	return 4
}

type script struct {
	c     *childLoop
	fault string
	nonce uint64
}

// peekProbe reads the configuration and puts it back.
func (s *script) peekProbe() bool {
	kind, payload, err := s.c.in.next(maxReady)
	if err != nil || kind != kindConfig {
		os.Exit(5)
	}
	var f frameBuilder
	f.begin(kindConfig)
	f.b = append(f.b, payload...)
	s.c.in = frameReader{src: io.MultiReader(bytes.NewReader(bytes.Clone(f.finish())), fdFile(0))}
	return bytes.Contains(payload, []byte(`"probe":true`))
}

func (s *script) raw(b []byte) { s.c.out.Write(b) }

func (s *script) answer(value string) {
	appendAnswer(&s.c.wr, &answer{nonce: s.nonce, value: []byte(value)})
	s.c.send()
}

func (s *script) ask(nonce, id uint64, op, params string) {
	f := &s.c.wr
	f.begin(kindAsk)
	f.fixed(nonce)
	f.uint(id)
	f.string(op)
	f.bytes([]byte(params))
	f.uint(0)
	s.c.send()
}

// misbehave returns an exit code, or -1 to go on.
func (s *script) misbehave(o *runOrder) int {
	switch s.fault {
	case "mute":
		time.Sleep(time.Hour)
	case "exit":
		return 0
	case "unconfined": // it says that it is ready, and nothing of a layer
		s.c.in.next(maxReady)
		s.c.wr.begin(kindReady)
		s.c.wr.b = append(s.c.wr.b, `{"layers":{"seccomp":"off (for a test)"}}`...)
		s.c.send()
		time.Sleep(time.Hour)
	case "panic":
		panic("boom")
	case "deaf":
		select {}
	case "garbage":
		s.raw(bytes.Repeat([]byte("\x00garbage\xff"), 1000))
		time.Sleep(time.Hour)
	case "half":
		s.raw([]byte{200, 0, 0, 0, kindAnswer, 1, 2, 3})
		return 0
	case "halfmute":
		s.raw([]byte{200, 0, 0, 0, kindAnswer, 1, 2, 3})
		time.Sleep(time.Hour)
	case "hugeframe":
		s.raw(append(binary.LittleEndian.AppendUint32(nil, 1<<31), kindAnswer))
		time.Sleep(time.Hour)
	case "zeroframe":
		s.raw([]byte{0, 0, 0, 0, 0})
		time.Sleep(time.Hour)
	case "flood":
		for {
			s.raw(bytes.Repeat([]byte{1, 0, 0, 0, 'z'}, 1000))
		}
	case "unknown": // a message of another version, then the answer: tolerated
		s.raw([]byte{3, 0, 0, 0, 'z', 1, 2})
		s.answer(`"tolerated"`)
		return -1
	case "wrongnonce":
		s.nonce++
		s.answer(`"forged"`)
		return -1
	case "twice":
		appendAnswer(&s.c.wr, &answer{nonce: s.nonce, value: []byte(`1`)})
		one := bytes.Clone(s.c.wr.finish())
		s.raw(append(one, one...))
		return -1
	case "late": // a second answer, when the test says that the first has been taken
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
		_, payload, _ := s.c.in.next(1 << 20)
		p := frameParser{b: payload}
		p.fixed()
		p.uint()
		if p.byte() == 1 {
			s.answer(fmt.Sprintf("%q", p.string()+": "+p.string()))
		}
		return -1
	case "asktwice":
		s.ask(s.nonce, 1, "call", `{"role":"a","method":"b","args":[],"kwargs":{}}`)
		s.ask(s.nonce, 2, "call", `{"role":"a","method":"b","args":[],"kwargs":{}}`)
		time.Sleep(time.Hour)
	case "ready":
		s.c.wr.begin(kindReady)
		s.c.send()
		time.Sleep(time.Hour)
	case "badchange":
		s.c.wr.begin(kindAnswer)
		s.c.wr.fixed(s.nonce)
		s.c.wr.b = append(s.c.wr.b, endValue, 0, 0, 0)
		s.c.wr.string("1")
		s.c.wr.uint(1)
		s.c.wr.string("k")
		s.c.wr.string("{broken")
		s.c.wr.uint(0)
		s.c.send()
		return -1
	case "factsflood":
		s.c.wr.begin(kindLoaded)
		s.c.wr.b = append(s.c.wr.b, bytes.Repeat([]byte("x"), 2*maxFacts)...)
		s.c.send()
		time.Sleep(time.Hour)
	case "factsbroken":
		s.c.wr.begin(kindLoaded)
		s.c.wr.b = append(s.c.wr.b, `{"facts":`...)
		s.c.send()
		time.Sleep(time.Hour)
	case "closepipe":
		fdClose(answerFD)
		time.Sleep(time.Hour)
	case "pong": // benchmarks: the least that a runner can do
		s.answer("1")
		return -1
	}
	return 9
}

func fdClose(fd int) { syscall.Close(fd) }
