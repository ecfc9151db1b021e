package result_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/result"
)

var weather = &dragoman.Tool{Name: "weather__get_weather", Original: "get_weather", Server: "weather"}

func ExampleShape_Message() {
	var shape result.Shape
	message := shape.Message(
		dragoman.Call{ID: "call_1", Tool: weather},
		dragoman.Result{
			Content: json.RawMessage(`{"content":[{"type":"text","text":"{\"t\": 22, \"sky\": \"cloudy\"}"}]}`),
			Info:    dragoman.Info{Duration: 22 * time.Millisecond},
		})
	fmt.Println(message.Text)
	// Output:
	// {"status":"success","data":{"t":22,"sky":"cloudy"},"meta":{"tool":"get_weather","server":"weather","duration_ms":22,"cached":false}}
}

func ExampleShape_Message_error() {
	var shape result.Shape
	message := shape.Message(
		dragoman.Call{Tool: weather},
		dragoman.Result{Problem: &dragoman.Problem{
			Code:    dragoman.CodeInvalidArguments,
			Message: "The arguments do not fit get_weather.",
			Fields:  []dragoman.Field{{Path: "/city", Expected: "string", Missing: true}},
		}})
	fmt.Println(message.Text)
	// Output:
	// {"status":"error","data":{"error":"invalid_arguments","message":"The arguments do not fit get_weather.","missing_field":"city","invalid":[{"path":"/city","expected":"string"}]},"meta":{"tool":"get_weather","server":"weather","duration_ms":0,"cached":false}}
}

func ExampleShape_Message_text() {
	shape := result.Shape{Profile: result.ProfileFor("qwen2.5-7b-instruct")}
	message := shape.Message(
		dragoman.Call{Tool: weather},
		dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"t":22,"sky":"cloudy"}}`)})
	fmt.Println(message.Text)
	// Output:
	// Result of get_weather (weather): success.
	// - t: 22
	// - sky: cloudy
	//
	// ```json
	// {"status":"success","data":{"t":22,"sky":"cloudy"},"meta":{"tool":"get_weather","server":"weather","duration_ms":0,"cached":false}}
	// ```
}

// A list of a thousand numbers does not fit 1,000 characters. The message has
// the first ones, and read_more the rest.
func ExampleShelf() {
	shelf := &result.Shelf{}
	shape := result.Shape{Limit: 1000, Shelf: shelf, Caller: "ann"}
	message := shape.Message(dragoman.Call{Tool: weather}, dragoman.Result{
		Content: json.RawMessage(`{"content":[],"structuredContent":{"numbers":[` + strings.Repeat("7,", 999) + `8]}}`),
	})

	var got struct {
		Meta struct {
			Truncated struct {
				Cut []struct {
					Pointer, Unit string
					Total         int
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(message.Text), &got); err != nil {
		fmt.Println(err)
	}
	fmt.Println(message.Cut, got.Meta.Truncated.Cut)

	page := shelf.Read("ann", json.RawMessage(`{"handle":"`+message.Handle+`","pointer":"/data/numbers","offset":997}`))
	fmt.Println(string(page.Content))
	// Output:
	// true [{/data/numbers items 1000}]
	// {"content":[],"structuredContent":{"total":1000,"count":3,"offset":997,"unit":"items","items":[7,7,8],"has_more":false,"next_offset":null}}
}

func ExampleDual() {
	res := result.Dual(dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"t":22}}`)}, false)
	fmt.Println(string(res.Content))
	// Output:
	// {"content":[{"type":"text","text":"{\"t\":22}"}],"structuredContent":{"t":22}}
}
