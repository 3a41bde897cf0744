package main

import (
	"os"
	"strings"
	"testing"
)

// These bounds hold for any parameters.
func TestSimulation(t *testing.T) {
	t.Parallel()
	p := measured()
	one := simulate(p, Case{Replicas: 1, Databases: 1})
	if again := simulate(p, Case{Replicas: 1, Databases: 1}); again != one {
		t.Errorf("the same case had %v, then %v", one, again)
	}
	// A closed loop: no client has two calls at once, and each waits for its program and for a transaction.
	if most := float64(p.Clients) / (p.Run/2 + p.Wait/2) * 1000; one.Rate <= 0 || one.Rate > most {
		t.Errorf("%.0f calls a second of %d clients, at most %.0f can be", one.Rate, p.Clients, most)
	}
	three := simulate(p, Case{Replicas: 3, Databases: 1})
	if three.Rate <= one.Rate || three.Rate > 3.1*one.Rate {
		t.Errorf("three replicas do %.2f times what one does", three.Rate/one.Rate)
	}
	if hot := simulate(p, Case{Replicas: 3, Databases: 1, OneTool: true}); hot.Rate >= three.Rate {
		t.Errorf("a row that all wait for costs nothing: %.0f and %.0f", hot.Rate, three.Rate)
	}
	if far := simulate(p, Case{Replicas: 3, Databases: 1, Forwarded: 1}); far.Rate > 1.02*three.Rate {
		t.Errorf("forwarding makes it faster: %.0f and %.0f", far.Rate, three.Rate)
	}
	// One database processor is the bottleneck: it cannot be busy more than all the time, nor commit more than it has
	// time for.
	p.DatabaseCores = 1
	full := simulate(p, Case{Replicas: 30, Databases: 1})
	if full.Busy > 1.01 || full.Busy < 0.95 || full.Rate > 1000/p.Each {
		t.Errorf("a database of one processor is busy for %.2f of the time, with %.0f calls a second", full.Busy,
			full.Rate)
	}
	if shards := simulate(p, Case{Replicas: 30, Databases: 5}); shards.Rate < 2*full.Rate {
		t.Errorf("five databases do %.2f times what one does", shards.Rate/full.Rate)
	}
}

// docs/scale-out.md contains the table for these figures.
func TestDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("long: simulates figures of many replicas")
	}
	t.Parallel()
	doc, err := os.ReadFile("../../docs/scale-out.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := table(measured()); !strings.Contains(string(doc), want) {
		t.Errorf("docs/scale-out.md does not have this table:\n%s", want)
	}
}
