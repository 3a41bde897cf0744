// Command lost makes one call and prints its value, behind its events with -stream.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	recurgent "github.com/recurgentd/recurgentd/clients/go"
	"github.com/recurgentd/recurgentd/clients/go/api"
)

func main() {
	ctx := context.Background()
	client, err := recurgent.New(recurgent.Options{})
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.Session(ctx, "shop")
	if err != nil {
		log.Fatal(err)
	}
	request, err := recurgent.Request("slow", 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	send := session.Send
	if len(os.Args) > 1 {
		send = func(ctx context.Context, r api.CallRequest) (*recurgent.Reply, error) { return stream(ctx, session, r) }
	}
	reply, err := send(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	var sum int
	if err := reply.Into(&sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
}

func stream(ctx context.Context, session *recurgent.Session, request api.CallRequest) (*recurgent.Reply, error) {
	running, err := session.Stream(ctx, request)
	if err != nil {
		return nil, err
	}
	for event, err := range running.Events(ctx) {
		if err != nil {
			return nil, err
		}
		fmt.Print(event.Type, " ")
	}
	return running.Reply(ctx)
}
