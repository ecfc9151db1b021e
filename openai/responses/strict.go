package responses

import (
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// codeParameters is the code of the error for parameters of a client's own function that
// cannot be strict, as OpenAI has it.
const codeParameters = "invalid_function_parameters"

// checkStrict refuses parameters of a function that says it is strict and cannot be.
// Upstreams tell that late, or with a fault of their own.
func checkStrict(o *rawjson.Object, name string) error {
	if string(o.Get("strict")) != "true" || rawjson.IsNull(o.Get("parameters")) {
		return nil
	}
	faults := dialect.StrictFaults(o.Get("parameters"))
	if len(faults) == 0 {
		return nil
	}
	return &model.Error{
		Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: codeParameters,
		Message: fmt.Sprintf("The function %.64q says that it is strict, and its parameters cannot be: %s.", name, faults[0]),
	}
}
