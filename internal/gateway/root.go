package gateway

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/console"
	"github.com/dragoman-mcp/dragoman/internal/wire/deadline"
)

// what is what the gateway says of itself to everybody who comes to its root: a person
// with a browser, or a program that looks what is there. It names no server, no model
// and no version, which are for those who have a key.
type what struct {
	Name          string `json:"name"`
	Is            string `json:"is"`
	OpenAI        string `json:"openai"`
	MCP           string `json:"mcp,omitempty"`
	Console       string `json:"console,omitempty"`
	Health        string `json:"health"`
	Ready         string `json:"ready"`
	Documentation string `json:"documentation"`
}

// root says what this is.
func (g *Gateway) root(w http.ResponseWriter, r *http.Request) {
	deadline.Refuse(w, r)
	self := what{
		Name: "dragoman", Is: "a gateway that gives models the tools of MCP servers",
		OpenAI: "/v1", MCP: "/mcp", Health: "/healthz", Ready: "/readyz", Documentation: "https://github.com/dragoman-mcp/dragoman",
	}
	if g.file.MCP.Off {
		self.MCP = ""
	}
	if g.now.Load().file.Console != config.ConsoleOff {
		self.Console = console.Root
	}
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(self)
		return
	}
	text := "This is Dragoman, " + self.Is + ".\n\n" +
		"OpenAI API    " + self.OpenAI + "  (the base_url of a client)\n"
	if self.MCP != "" {
		text += "MCP           " + self.MCP + "  (/mcp/LABEL is one server)\n"
	}
	if self.Console != "" {
		text += "console       " + self.Console + "\n"
	}
	text += "health        " + self.Health + ", " + self.Ready + "\n" +
		"more          " + self.Documentation
	plain(w, http.StatusOK, text)
}
