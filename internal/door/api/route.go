package api

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// uses are the routes of models, under /v1: a request there is answered by the model that
// its body names, and judged and counted as its use. Others that name one, such as jobs of
// fine-tuning and batches, make something that stays.
var uses = map[string]bool{
	"/v1/chat/completions": true, "/v1/completions": true, "/v1/responses": true, "/v1/messages": true,
	"/v1/embeddings": true, "/v1/moderations": true,
	"/v1/rerank": true, "/v1/score": true, "/v1/classify": true, "/v1/pooling": true,
	"/v1/images/generations": true, "/v1/images/edits": true, "/v1/images/variations": true,
	"/v1/audio/speech": true, "/v1/audio/transcriptions": true, "/v1/audio/translations": true,
}

// answersUnnamed reports whether a request that names no model may be answered by one all the
// same, as llama.cpp and vLLM do: then it is a use of whatever the upstream has, however the
// route is spelled. A form names its model as it passes.
func answersUnnamed(r *http.Request, body []byte) bool {
	if len(body) == 0 {
		return false
	}
	route := strings.ToLower(path.Clean(r.URL.Path))
	return uses[route] || strings.HasSuffix(route, "/completions")
}

// changes reports whether a relayed request may change something at its upstream: what
// is neither a question nor the use of a model.
func changes(method, path string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		return !uses[path]
	}
	return true
}

// repeats refuses a method by which a server, such as Apache as it comes, answers with the
// whole request that it got (RFC 9110 section 9.3.8), our key in it, and one that is for
// proxies.
func repeats(method string) error {
	switch strings.ToUpper(method) {
	case http.MethodTrace, "TRACK", http.MethodConnect:
		return &model.Error{
			Status: http.StatusMethodNotAllowed, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest,
			Message: fmt.Sprintf("Requests with the method %s are not passed on.", method),
		}
	}
	return nil
}

// counts are routes that say what a request would cost; their bodies name its model.
var counts = map[string]bool{"/v1/messages/count_tokens": true, "/v1/responses/input_tokens": true}

// modelless are the routes that no model answers, and of which none is begun: what is kept
// can be read, taken back and deleted.
var modelless = routesOf(
	"GET /v1/models", "/v1/models/{model...}", // which are judged by the model that the path names
	"GET /v1/files", "POST /v1/files", "GET /v1/files/{id}", "DELETE /v1/files/{id}", "GET /v1/files/{id}/content",
	"POST /v1/uploads", "POST /v1/uploads/{id}/parts", "POST /v1/uploads/{id}/complete", "POST /v1/uploads/{id}/cancel",
	"GET /v1/responses/{id}", "DELETE /v1/responses/{id}", "POST /v1/responses/{id}/cancel", "GET /v1/responses/{id}/input_items",
	"GET /v1/chat/completions", "GET /v1/chat/completions/{id}", "DELETE /v1/chat/completions/{id}", "GET /v1/chat/completions/{id}/messages",
)

func routesOf(patterns ...string) *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	return mux
}

// untoldModel says why a request that is relayed for somebody who may use some models only
// is refused unless it names one of them: which model answers it, or what is begun by it, is
// not known. named is the model in its body or path, or empty. Such a caller gets the routes
// of which it is known, and what is said behind a WebSocket nobody here reads.
func untoldModel(r *http.Request, body []byte) error {
	message := ""
	switch _, pattern := modelless.Handler(r); {
	case upgrades(r):
		message = "This key may use some models only, and what goes through a WebSocket can name others."
	case pattern != "":
		return nil
	case r.Method != http.MethodPost || !uses[r.URL.Path] && !counts[r.URL.Path]:
		message = "This key may use some models only, and which of them a request to " + r.Method + " " + r.URL.Path + " uses is not known."
	case formParams(r) == nil && !namesModel(body): // a form is read as it passes
		message = "This key may use some models only: name one of them in \"model\"."
	default:
		return nil
	}
	return &model.Error{Status: http.StatusForbidden, Type: model.TypePermission, Code: codeModelNotKnown, Param: "model", Message: message}
}

// namesModel reports whether a JSON body names its model.
func namesModel(body []byte) bool {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return false
	}
	name, ok := rawjson.String(o.Get("model"))
	return ok && name != ""
}

// codeModelNotKnown is the code of requests that are refused since it is not known which
// model they use.
const codeModelNotKnown = "model_not_known"
