// Command go takes six steps with recurgentd: a session, a call, a stream, a verdict, the history, the tools.
//
//	cd examples/go && go run .
package main

import (
	"context"
	"fmt"
	"log"

	recurgent "github.com/recurgentd/recurgentd/clients/go"
	"github.com/recurgentd/recurgentd/clients/go/api"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := recurgent.New(recurgent.Options{}) // RECURGENT_URL, RECURGENT_TOKEN
	if err != nil {
		return err
	}

	session, err := client.Session(ctx, "calculator")
	if err != nil {
		return err
	}
	fmt.Println("session:", session.ID)

	added, err := session.Call(ctx, "add", 2, 3)
	if err != nil {
		return err
	}
	var sum int
	if err := added.Into(&sum); err != nil { // a *recurgent.CallError where the outcome is an error
		return err
	}
	fmt.Println("call:", sum)

	if err := stream(ctx, session); err != nil {
		return err
	}

	verdict, err := client.Judge(ctx, added.CallID, api.VerdictRequest{Verdict: api.VerdictRequestVerdictRight})
	if err != nil {
		return err
	}
	fmt.Println("verdict:", verdict.Verdict, *verdict.ExampleState)

	fmt.Print("history:")
	for record, err := range session.History(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf(" %s=%s", record.MethodName, record.OutcomeSummary.Status)
	}

	fmt.Print("\ntools:")
	for tool, err := range client.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Print(" ", tool.Role)
	}
	fmt.Println()
	return nil
}

func stream(ctx context.Context, session *recurgent.Session) error {
	request, err := recurgent.Request("sqrt", 2)
	if err != nil {
		return err
	}
	running, err := session.Stream(ctx, request)
	if err != nil {
		return err
	}
	fmt.Print("stream:")
	for event, err := range running.Events(ctx) {
		if err != nil {
			return err
		}
		fmt.Print(" ", event.Type)
	}
	ended, err := running.Reply(ctx)
	if err != nil {
		return err
	}
	var root float64
	if err := ended.Into(&root); err != nil {
		return err
	}
	fmt.Println("", root)
	return nil
}
