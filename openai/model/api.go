package model

// An API is one by which a [Client] asks a model. A [Dialogue] is the same over each:
// its history, what it offers and what it hears have the form of the Chat API.
type API string

// The APIs. ChatAPI is the default.
const (
	ChatAPI      API = ""
	ResponsesAPI API = "responses"
)

// Path returns where requests go, below the address of an API.
func (a API) Path() string {
	if a == ResponsesAPI {
		return "/responses"
	}
	return "/chat/completions"
}
