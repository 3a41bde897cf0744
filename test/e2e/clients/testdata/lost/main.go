// Command lost makes one call and prints its value.
package main

import (
	"context"
	"fmt"
	"log"

	recurgent "github.com/recurgentd/recurgentd/clients/go"
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
	reply, err := session.Call(ctx, "slow", 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	var sum int
	if err := reply.Into(&sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
}
