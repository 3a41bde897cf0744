//go:build ops && postgres

package console

import (
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A replica shows those that share its database, and the calls of all.
func TestReplicasPage(t *testing.T) {
	database, ca := pgtest.NewDatabase(t), apptest.NewAuthority(t)
	gate := apptest.NewGate(t)
	var all []*rig.Daemon
	for i := range 2 {
		dir := t.TempDir()
		cert, key := ca.Pair(t, int64(i+2)).Write(t, dir)
		all = append(all, rig.StartIn(t, nil, []string{"RECURGENT_STORE=" + database}, "--provider", "replay",
			"--advertise", "127.0.0.1:0", "--cluster-ca", ca.Write(t, dir),
			"--cluster-cert", cert, "--cluster-key", key, "--fetch-allow", gate.Host, "--runners", "1"))
	}
	all[0].Do(200, "PUT", rig.MethodPath("counter", "wait"),
		object{"code": rig.Program(fmt.Sprintf("\t_, err := call.Fetch(%q)\n\treturn 1, err",
			"http://"+gate.Host+"/"))})
	s := all[0].Session("counter")
	done := make(chan rig.Reply, 1)
	go func() { done <- all[0].Call(s, "wait") }()
	<-gate.Entered

	p := newBrowser(t).open(t, "one", all[1].URL, nil)
	p.at("#/system")
	list := all[1].Get("/v1/replicas")["data"].([]any)
	if len(list) != 2 {
		t.Fatalf("there are %d replicas: %v", len(list), list)
	}
	for _, r := range list {
		x := r.(object)
		p.sees(fmt.Sprintf("table[aria-label=Replicas] tr:has-text('%v'):has-text('%v'):has-text('%v')", x["id"],
			x["address"], x["version"]))
	}
	p.accessible("System of a replica")
	ids := make([]string, 2)
	for i, d := range all {
		ids[i] = d.Do(200, "GET", "/v1/version", nil).Header.Get("Recurgent-Replica")
	}
	p.sees("text=Replica "+ids[1]+" answers", "dt:text-is('Calls') + dd:has-text('0 running')")
	p.do("selectOption", "label:has-text('Replica') select", ids[0]) // its figures, through the one that is asked
	p.sees("text=Replica "+ids[0]+" answers", "dt:text-is('Calls') + dd:has-text('1 running')",
		"tr:has-text('"+ids[0]+"') .badge:text-is('shown')")
	p.at("#/live") // of a call that the other one runs
	p.sees("tr:has-text('counter.wait') .badge:text-is('running')")
	gate.Open()
	<-done
	p.sees("tr:has-text('counter.wait') .badge:text-is('ok')")
	p.clean()
}
