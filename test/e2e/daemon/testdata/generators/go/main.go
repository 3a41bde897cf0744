// Command generators makes a call by the client that oapi-codegen generates, and one by ogen's.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/go-faster/jx"

	"generators/oapi"
	"generators/ogen"
)

func main() {
	if err := byOapi(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	if err := byOgen(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func byOapi(url string) error {
	ctx := context.Background()
	c, err := oapi.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	made, err := c.CreateSessionWithResponse(ctx, oapi.SessionRequest{Role: "calculator"})
	if err != nil || made.JSON201 == nil {
		return fmt.Errorf("oapi-codegen: %v, %s", err, made.Body)
	}
	reply, err := c.CreateCallWithResponse(ctx, made.JSON201.Id, &oapi.CreateCallParams{}, oapi.CallRequest{Method: "add", Args: &[]oapi.Any{2, 3}})
	if err != nil || reply.JSON200 == nil {
		return fmt.Errorf("oapi-codegen: %v, %s", err, reply.Body)
	}
	outcome, err := reply.JSON200.Outcome.AsOkOutcome()
	fmt.Println("oapi-codegen", outcome.Value)
	return err
}

type noToken struct{}

func (noToken) Bearer(context.Context, ogen.OperationName) (ogen.Bearer, error) {
	return ogen.Bearer{Token: "none"}, nil
}

func byOgen(url string) error {
	ctx := context.Background()
	c, err := ogen.NewClient(url, noToken{})
	if err != nil {
		return err
	}
	res, err := c.CreateSession(ctx, &ogen.SessionRequest{Role: "calculator"})
	made, ok := res.(*ogen.SessionHeaders)
	if err != nil || !ok {
		return fmt.Errorf("ogen: %T, %v", res, err)
	}
	request := &ogen.CallRequest{Method: "add", Args: ogen.NewOptNilAnyArray([]ogen.Any{ogen.Any(jx.Raw("2")), ogen.Any(jx.Raw("3"))})}
	replied, err := c.CreateCall(ctx, request, ogen.CreateCallParams{ID: made.Response.ID})
	reply, ok := replied.(*ogen.CallReplyHeaders)
	if err != nil || !ok {
		return fmt.Errorf("ogen: %T, %v", replied, err)
	}
	fmt.Println("ogen", reply.Response.Outcome.OkOutcome.Value)
	return nil
}
