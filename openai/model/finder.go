package model

import (
	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
)

// A Finder runs [FindTools], for conversations that search for tools:
//
//	var finder model.Finder
//	client := &model.Client{BaseURL: url, Key: key}
//	talk := &chat.Talk{Client: client, Model: name, Search: model.Search{When: model.Auto}}
//	loop := dragoman.Loop{Tools: finder.Around(client, tools)}
//
// It keeps the indexes of the lists that were searched last, so that one is best for all
// toolsets of a program. The zero Finder is ready; it is safe for concurrent use.
type Finder struct{ searches find.Searches }

// Around returns a toolset that runs what tools does, and find_tools on what it lists. It
// does not list find_tools: the conversation offers it where its [Search] says so. What is
// found is shown as the model of the client is offered tools, so give it the client of the
// conversation.
func (f *Finder) Around(client *Client, tools dragoman.Toolset) dragoman.Toolset {
	return &find.Tools{Toolset: tools, All: tools, Searches: &f.searches, Dialect: client.dialect()}
}
