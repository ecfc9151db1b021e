package toolkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// The functions of these files are the examples of docs/toolkit.md, word for
// word; TestGuide holds that.

// reading are the hints of a tool that only looks something up.
var reading = toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No}

// ask calls one tool and prints the text that came back.
func ask(s *toolkit.Server, tool, arguments string) {
	ctx := context.Background()
	session, err := s.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		log.Fatal(err)
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			fmt.Println(text.Text)
		}
	}
}

func newShop() *toolkit.Server { return toolkit.NewServer(toolkit.Options{Service: "shop"}) }

// find is what most examples say about a tool.
func find(name string) toolkit.Tool {
	return toolkit.Tool{
		Name: name, Description: "Looks something up.", Hints: reading,
		Examples: []toolkit.Example{{Ask: "Something", Arguments: `{}`}},
	}
}

type (
	RestaurantQuery struct {
		City    string `json:"city" desc:"The city to look in, such as Chengdu"`
		Cuisine string `json:"cuisine,omitempty" desc:"Kind of cooking, such as Italian; all kinds if left out"`
	}
	Restaurants struct {
		Names []string `json:"names" desc:"Best first; empty if nothing matches"`
	}
)

func ExampleInputSchema_required() {
	schema, err := toolkit.InputSchema[RestaurantQuery]()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(schema))
	// Output: {"type":"object","properties":{"city":{"type":"string","description":"The city to look in, such as Chengdu"},"cuisine":{"type":"string","description":"Kind of cooking, such as Italian; all kinds if left out"}},"required":["city"],"additionalProperties":false}
}

type Sum struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

func ExampleInputSchema_numbers() {
	schema, err := toolkit.InputSchema[Sum]()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(schema))
	// Output: {"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}
}

type Trip struct {
	City   string    `json:"city" min:"1" max:"100"`
	Class  string    `json:"class" enum:"first,second" default:"second"`
	Seats  int       `json:"seats" default:"1" min:"1" max:"9"`
	Leaves time.Time `json:"leaves,omitzero" desc:"Departure; now if left out"`
	Email  string    `json:"email,omitempty" format:"email"`
}

func ExampleAdd_defaults() {
	s := newShop()
	toolkit.Add(s, toolkit.Tool{
		Name: "shop_find_trip", Description: "Finds a trip.", Hints: reading,
		Examples: []toolkit.Example{{Ask: "A train to Rome", Arguments: `{"city":"Rome"}`}},
	}, func(_ context.Context, t Trip) (toolkit.Text, error) {
		return toolkit.Text(fmt.Sprintf("%d seat, %s class, to %s", t.Seats, t.Class, t.City)), nil
	})
	ask(s, "shop_find_trip", `{"city":"Rome"}`)
	ask(s, "shop_find_trip", `{"seats":10,"class":"third"}`)
	// Output:
	// 1 seat, second class, to Rome
	// Invalid arguments for shop_find_trip: missing property 'city', expected string; class: expected one of 'first', 'second', got "third"; seats: expected a number of at most 9, got 10.
}

func ExampleAdd_restaurants() {
	s := newShop()
	toolkit.Add(s, toolkit.Tool{
		Name:        "shop_find_restaurant",
		Title:       "Restaurant finder",
		Description: "Finds restaurants in one city, optionally of one cuisine.",
		Hints:       reading,
		Examples:    []toolkit.Example{{Ask: "Italian food in Rome", Arguments: `{"city":"Rome","cuisine":"Italian"}`}},
	}, func(_ context.Context, q RestaurantQuery) (Restaurants, error) {
		if q.City != "Rome" {
			return Restaurants{}, nil
		}
		return Restaurants{[]string{"Da Pia", "Il Forno"}}, nil
	})
	ask(s, "shop_find_restaurant", `{"city":"Rome"}`)
	ask(s, "shop_find_restaurant", `{"city":"Oslo"}`)
	// Output:
	// {"names":["Da Pia","Il Forno"]}
	// {"names":[]}
}

type Employee struct {
	ID           string     `json:"id" md:"id"`
	Name         string     `json:"name" md:"name"`
	Subordinates []Employee `json:"subordinates,omitempty"`
}

type EmployeeTree struct {
	EmpID string     `json:"empId" desc:"The employee that was asked for"`
	Tree  []Employee `json:"tree" desc:"The employee, with everybody below"`
}

func (t EmployeeTree) Summary() string {
	return fmt.Sprintf("Found the organisation of employee %s: %d people. The tree is in structuredContent.", t.EmpID, count(t.Tree))
}

func count(list []Employee) int {
	n := len(list)
	for _, e := range list {
		n += count(e.Subordinates)
	}
	return n
}

func ExampleOutputSchema() {
	schema, err := toolkit.OutputSchema[EmployeeTree]()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(schema))
	// Output: {"type":"object","properties":{"empId":{"type":"string","description":"The employee that was asked for"},"tree":{"type":"array","description":"The employee, with everybody below","items":{"$ref":"#/$defs/Employee"}}},"required":["empId","tree"],"$defs":{"Employee":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"subordinates":{"type":"array","items":{"$ref":"#/$defs/Employee"}}},"required":["id","name"]}}}
}

type Either struct{ Value json.RawMessage }

func (Either) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"anyOf":[{"type":"string"},{"type":"integer"}]}`)
}

func (e *Either) UnmarshalJSON(data []byte) error { e.Value = data; return nil }

func ExampleSchemer() {
	type query struct {
		Order Either `json:"order" desc:"Number or code of the order"`
	}
	schema, err := toolkit.InputSchema[query]()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(schema))
	// Output: {"type":"object","properties":{"order":{"anyOf":[{"type":"string"},{"type":"integer"}],"description":"Number or code of the order"}},"required":["order"],"additionalProperties":false}
}

func ExampleServer_Validate() {
	s := toolkit.NewServer(toolkit.Options{Service: "shop"})
	toolkit.Add(s, toolkit.Tool{Name: "find_trip", Hints: toolkit.Hints{ReadOnly: toolkit.Yes}},
		func(context.Context, struct{ Stop chan int }) (toolkit.Text, error) { return "", nil })
	fmt.Println(s.Validate())
	// Output:
	// shop-mcp-server cannot start, 4 problems:
	//   tool "find_trip": arguments: struct.Stop: type chan int has no form in JSON
	//   tool "find_trip": names of this server begin with the service: shop_{action}_{resource} [N012]
	//   tool "find_trip": no description: say what the tool does, when to use it and what comes back [D001]
	//   tool "find_trip": hints not stated: destructiveHint, idempotentHint, openWorldHint; say Yes or No to each [A009]
}
