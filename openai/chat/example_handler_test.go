package chat_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A handler of POST /v1/chat/completions whose model has tools of which its clients know
// nothing: each gets one completion, and none of the calls.
func ExampleNew() {
	client := &model.Client{
		BaseURL: "http://rehearsal.invalid/v1",
		HTTP:    &http.Client{Transport: &rehearsal.Model{}},
	}
	loop := dragoman.Loop{Tools: sky{}}
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var conversation *chat.Conversation
		request, err := chat.Parse(body)
		if err == nil {
			conversation, err = chat.New(request, w, chat.Options{Model: client})
		}
		if err != nil {
			if e, ok := model.AsError(err); ok {
				e.Write(w)
			}
			return
		}
		if err := loop.Run(r.Context(), conversation); err != nil {
			log.Print(err) // the client has been told
		}
	}
	server := httptest.NewServer(http.HandlerFunc(handler))
	defer server.Close()

	for _, messages := range []string{`[{"role":"user","content":"CALL get_weather {\"city\":\"Oslo\"}\nTHEN\nSAY It is blue."}]`, `7`} {
		answer, err := http.Post(server.URL, "application/json", strings.NewReader(`{"model":"rehearsal","messages":`+messages+`}`))
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.Contains(string(body), "It is blue."), strings.Contains(string(body), "get_weather"))
	}
	// Output:
	// 200 true false
	// 400 false false
}
