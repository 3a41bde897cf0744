//go:generate go run ./gen .

// Package gate decides whether a forged program may run, and prepares it. It parses the program and type-checks it
// against the allowed packages, whose export data is embedded. It repairs what needs no model (missing and unused
// imports, unused variables), applies the policy, and returns facts about the program.
//
// It reads no files and needs no Go installation. Source is hostile: sizes, nesting and constants are bounded before
// the type checker sees them. The gate is not a security boundary and must itself run in a confined process.
package gate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/outside"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// Types of refusals.
const (
	invalidCode      = report.InvalidCode
	toolRegistry     = report.ToolRegistry
	dependencyPolicy = report.DependencyPolicy
)

// fileName is the name of a program's file in messages.
const fileName = "program.go"

// Options configures a Gate. The zero value is the default policy.
type Options struct {
	MaxSource int           // bytes of source; 64 KiB when 0
	Deadline  time.Duration // per check, in processor time of the process; 4 s when 0
}

// A Gate checks programs, one at a time. It must not be used concurrently.
type Gate struct {
	opts Options
	lib  *library
	// used returns the processor time of the process, which bounds checks. Tests replace it.
	used func() time.Duration

	stuck bool // a check overran its deadline and may still be running; all later checks are refused
}

// New returns a Gate. A package is decoded when a program first imports it; only the host package is decoded at once.
func New(o Options) (*Gate, error) {
	if o.MaxSource < 0 || o.Deadline < 0 {
		return nil, errors.New("gate: MaxSource and Deadline must not be negative")
	}
	if o.MaxSource == 0 {
		o.MaxSource = 64 << 10
	}
	if o.Deadline == 0 {
		o.Deadline = 4 * time.Second
	}
	lib, err := newLibrary()
	if err != nil {
		return nil, err
	}
	return &Gate{opts: o, lib: lib, used: processorTime}, nil
}

// Check parses, type-checks and judges source. Exactly one of the results is nil. Check does not panic.
func (g *Gate) Check(source string) (*Program, *Refusal) {
	return g.bounded(&check{gate: g, source: source, fset: token.NewFileSet()})
}

// bounded runs a check within the deadline.
func (g *Gate) bounded(c *check) (*Program, *Refusal) { return within(g, c.run) }

// within runs work within the deadline. If work does not end in time it keeps running, and the Gate refuses everything
// from then on.
func within(g *Gate, work func() (*Program, *Refusal)) (*Program, *Refusal) {
	if g.stuck {
		return nil, &Refusal{Type: invalidCode, Message: "an earlier check did not end"}
	}
	type answer struct {
		p *Program
		r *Refusal
	}
	// The buffer lets the goroutine end even if its answer comes after the deadline.
	done := make(chan answer, 1)
	go func() {
		rt.GrowStack()
		p, r := work()
		done <- answer{p, r}
	}()
	began, left := g.used(), g.opts.Deadline
	for left > 0 {
		// The limit counts processor time: on a busy machine even a harmless check takes long by the clock.
		timer := time.NewTimer(max(left, minWait))
		select {
		case a := <-done:
			timer.Stop()
			return a.p, a.r
		case <-timer.C:
			left = g.opts.Deadline - (g.used() - began)
		}
	}
	// The check cannot be stopped, and it keeps using state that all checks share.
	g.stuck = true
	return nil, &Refusal{Type: invalidCode, Message: "the program takes too long to check",
		Hint: "Write a simpler program."}
}

// minWait is the shortest interval between two looks at the time that a check has used.
const minWait = time.Millisecond

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // getrusage fails only for invalid arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A check is the state of one Check.
type check struct {
	gate    *Gate
	source  string
	fset    *token.FileSet
	file    *ast.File
	info    *types.Info
	pkg     *types.Package
	errs    []types.Error
	faults  []fault
	unused  []types.Error // declared and not used
	inputs  string        // inferred interface, as JSON
	outside outside.Named // hosts, writes and tools that the text names
	residue bool          // see Program.Residue
}

// run performs the steps of a check in order. Each step relies on what the earlier ones have bounded or repaired, and a
// panic becomes a refusal.
func (c *check) run() (p *Program, r *Refusal) {
	defer func() {
		if x := recover(); x != nil {
			p, r = nil, &Refusal{Type: invalidCode, Message: fmt.Sprintf("the program could not be checked: %v", x)}
		}
	}()
	if len(c.source) > c.gate.opts.MaxSource {
		return nil, &Refusal{Type: invalidCode, Message: fmt.Sprintf("the program has %d bytes; at most %d are allowed",
			len(c.source), c.gate.opts.MaxSource),
			Hint: "Write a shorter program; large tables do not belong in code."}
	}
	if r := c.parse(); r != nil {
		return nil, r
	}
	if r := c.syntaxPolicy(); r != nil {
		return nil, r
	}
	// Missing imports are in the tree now, so the type checker can resolve their names.
	if r := c.check(); r != nil {
		return nil, r
	}
	if r := c.typePolicy(); r != nil {
		return nil, r
	}
	if r := c.selectorPolicy(); r != nil {
		return nil, r
	}
	p = &Program{Source: c.source, Fset: c.fset, Pkg: c.pkg, Info: c.info, File: c.file, Facts: c.facts(),
		Residue: c.residue}
	p.Facts.Interface = c.inputs
	p.Facts.Hosts, p.Facts.Writes, p.Facts.Tools = c.outside.Hosts, c.outside.Writes, c.outside.Tools
	for _, e := range c.unused {
		p.Unused = append(p.Unused, e.Pos)
	}
	return p, nil
}

// parse bounds the nesting of tokens and parses the source. Errors of syntax become a refusal.
func (c *check) parse() *Refusal {
	if r := c.boundTokens(); r != nil {
		return r
	}
	file, err := parser.ParseFile(c.fset, fileName, c.source, parser.ParseComments)
	c.file = file
	if err != nil {
		var list scanner.ErrorList
		if errors.As(err, &list) {
			return c.syntaxErrors(list)
		}
		return &Refusal{Type: invalidCode, Message: err.Error()}
	}
	return nil
}

// syntaxErrors returns a refusal with the first syntax error of each line and the faults of the imports, which can be
// judged even so.
func (c *check) syntaxErrors(list scanner.ErrorList) *Refusal {
	hint := syntaxHint(c.source)
	lines := map[int]bool{}
	for _, e := range list {
		if !lines[e.Pos.Line] { // later errors of a line are usually caused by the first
			say := hint
			if strings.Contains(e.Msg, "'?'") {
				say = "Go has no a ? b : c: write x := c, then if a { x = b }."
			}
			c.faultAt(invalidCode, e.Pos, e.Msg, say)
		}
		lines[e.Pos.Line] = true
	}
	if c.file != nil {
		c.importPolicy()
	}
	return c.refusal("syntax error: ")
}
