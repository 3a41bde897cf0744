// Command generators makes a call with a keyword argument in a session with a context, and reads the context, by the
// client that oapi-codegen generates and by that of ogen.
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
	request := oapi.SessionRequest{Role: "calculator", Context: &map[string]any{"value": 7}}
	made, err := c.CreateSessionWithResponse(ctx, request)
	if err != nil || made.JSON201 == nil {
		return fmt.Errorf("oapi-codegen: %v, %s", err, made.Body)
	}
	call := oapi.CallRequest{Method: "add", Args: &[]oapi.Any{2}, Kwargs: &map[string]any{"b": 3}}
	reply, err := c.CreateCallWithResponse(ctx, made.JSON201.Id, &oapi.CreateCallParams{}, call)
	if err != nil || reply.JSON200 == nil {
		return fmt.Errorf("oapi-codegen: %v, %s", err, reply.Body)
	}
	outcome, err := reply.JSON200.Outcome.AsOkOutcome()
	if err != nil {
		return err
	}
	memory, err := c.GetContextWithResponse(ctx, made.JSON201.Id)
	if err != nil || memory.JSON200 == nil {
		return fmt.Errorf("oapi-codegen: %v, %s", err, memory.Body)
	}
	fmt.Println("oapi-codegen", outcome.Value, (*memory.JSON200)["value"])
	return nil
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
	begin := ogen.NewOptNilSessionRequestContext(ogen.SessionRequestContext{"value": jx.Raw("7")})
	res, err := c.CreateSession(ctx, &ogen.SessionRequest{Role: "calculator", Context: begin})
	made, ok := res.(*ogen.SessionHeaders)
	if err != nil || !ok {
		return fmt.Errorf("ogen: %T, %v", res, err)
	}
	request := &ogen.CallRequest{Method: "add", Args: ogen.NewOptNilAnyArray([]ogen.Any{ogen.Any(jx.Raw("2"))}),
		Kwargs: ogen.NewOptNilCallRequestKwargs(ogen.CallRequestKwargs{"b": jx.Raw("3")})}
	replied, err := c.CreateCall(ctx, request, ogen.CreateCallParams{ID: made.Response.ID})
	reply, ok := replied.(*ogen.CallReplyHeaders)
	if err != nil || !ok {
		return fmt.Errorf("ogen: %T, %v", replied, err)
	}
	read, err := c.GetContext(ctx, ogen.GetContextParams{ID: made.Response.ID})
	memory, ok := read.(*ogen.ContextHeaders)
	if err != nil || !ok {
		return fmt.Errorf("ogen: %T, %v", read, err)
	}
	fmt.Println("ogen", reply.Response.Outcome.OkOutcome.Value, memory.Response["value"])
	return nil
}
