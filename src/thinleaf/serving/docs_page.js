"use strict";
document.getElementById("send").addEventListener("click", async function () {
  const status = document.getElementById("status");
  const answer = document.getElementById("answer");
  status.textContent = "…";
  try {
    const response = await fetch("predict", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: document.getElementById("body").value,
    });
    const text = await response.text();
    status.textContent = response.status;
    try {
      answer.textContent = JSON.stringify(JSON.parse(text), null, 1);
    } catch {
      answer.textContent = text;
    }
    answer.hidden = false;
  } catch (error) {
    status.textContent = String(error);
  }
});
