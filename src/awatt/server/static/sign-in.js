// Asks for the token and exchanges it for a link that opens the page. The token is not stored.

// To the project and the view that the address describes.
const { hash, search } = location, project = new URLSearchParams(search).get("project");
const rest = (hash.length > 1 ? `&view=${encodeURIComponent(hash.slice(1))}` : "") + (project ? `&project=${encodeURIComponent(project)}` : "");
const form = document.getElementById("sign-in"), token = document.getElementById("token"), refused = document.getElementById("refused");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  refused.textContent = "";
  try {
    const response = await fetch("/v1/link", { method: "POST", headers: { authorization: `Bearer ${token.value.trim()}` } });
    const content = await response.json();
    if (response.ok) location.replace(content.path + rest);
    else refused.textContent = response.status === 401 ? "This is not the token of this server. awatt serve prints it when it starts." : content.error;
  } catch (error) { // a header cannot hold every character
    refused.textContent = error instanceof TypeError && !/^[\x21-\x7e]*$/.test(token.value.trim()) ? "This is not a token: it has characters that no token has." : "The server does not respond. Is awatt serve still running?";
  }
});
form.querySelector("button").disabled = false; // before this the browser would send the form itself, and lose the token
