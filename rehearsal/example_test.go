package rehearsal_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A test server that any OpenAI client can be pointed at. The model is told
// what to call; the client under test has to make the call and come back.
func Example() {
	srv := httptest.NewServer(&rehearsal.Model{})
	defer srv.Close()

	res, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{
		"model": "rehearsal",
		"messages": [{"role": "user", "content": "CALL weather {\"city\": \"Beijing\"}\nSAY Take an umbrella."}],
		"tools": [{"type": "function", "function": {"name": "get_weather"}}]
	}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	call := answer.Choices[0].Message.ToolCalls[0].Function
	fmt.Println(call.Name, call.Arguments, answer.Choices[0].FinishReason)
	// Output:
	// get_weather {"city": "Beijing"} tool_calls
}

// Without directives the model picks a tool and fills its arguments by
// comparing words.
func Example_leftToItself() {
	client := &http.Client{Transport: &rehearsal.Model{}}
	res, err := client.Post("http://rehearsal/v1/chat/completions", "application/json", strings.NewReader(`{
		"model": "rehearsal",
		"messages": [{"role": "user", "content": "Find an Italian restaurant in Shanghai"}],
		"tools": [{"type": "function", "function": {"name": "find_restaurant", "parameters": {
			"type": "object",
			"properties": {
				"city": {"type": "string"},
				"cuisine": {"type": "string", "enum": ["Italian", "Thai"]}
			},
			"required": ["city"]
		}}}]
	}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	_, after, _ := strings.Cut(string(body), `"arguments":`)
	arguments, _, _ := strings.Cut(after, "}}")
	fmt.Println(arguments)
	// Output:
	// "{\"city\":\"Shanghai\",\"cuisine\":\"Italian\"}"
}

// In process, with a misbehaviour named in the request: the stream breaks in
// the middle, as when a server dies.
func ExampleModel_RoundTrip() {
	client := &http.Client{Transport: &rehearsal.Model{}}
	res, err := client.Post("http://rehearsal/v1/chat/completions", "application/json", strings.NewReader(`{
		"model": "rehearsal:cut-stream",
		"stream": true,
		"messages": [{"role": "user", "content": "SAY one two three four"}]
	}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		_, after, found := strings.Cut(lines.Text(), `"delta":`)
		if delta, _, whole := strings.Cut(after, "}"); found && whole {
			fmt.Println(delta + "}")
		}
	}
	fmt.Println(lines.Err())
	// Output:
	// {"role":"assistant","content":"","refusal":null}
	// {"content":"one "}
	// {"content":"two "}
	// unexpected EOF
}

func ExampleMisbehaviours() {
	for _, b := range rehearsal.Misbehaviours()[:5] {
		fmt.Printf("rehearsal:%-9s %s\n", b, b.Means())
	}
	// Output:
	// rehearsal:401       401
	// rehearsal:429       429 with Retry-After: 1
	// rehearsal:429-once  429 with Retry-After: 1 for the first request with the same body
	// rehearsal:500       500
	// rehearsal:crlf      the lines of a stream end in CR LF
}
