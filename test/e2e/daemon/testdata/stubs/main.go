// Command stubs calls methods by their wrappers: stubs FILE, with the id of a file that it passes on.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	recurgent "github.com/recurgentd/recurgentd/clients/go"
	"github.com/recurgentd/recurgentd/examples/go/tools"
)

func main() {
	if err := run(context.Background(), map[string]any{"$file": os.Args[1]}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, sheet map[string]any) error {
	client, err := recurgent.New(recurgent.Options{})
	if err != nil {
		return err
	}
	session, err := client.Session(ctx, "calculator")
	if err != nil {
		return err
	}
	a, b := 2.0, 3.0
	sum, err := tools.NewCalculator(session).Add(ctx, tools.CalculatorAddArgs{A: &a, B: &b})
	if err != nil {
		return err
	}
	same, err := tools.NewFile(session).Same(ctx, tools.FileSameArgs{Sheet: sheet, Unit: "km"})
	if err != nil {
		return err
	}
	fmt.Println(sum, same["$file"])
	return nil
}
