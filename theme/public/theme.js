// Runs before the first paint, so that a dark page never flashes white.
{
  const saved = () => {
    try {
      return localStorage.getItem("mha-teach.theme");
    } catch {
      return null; // storage is blocked: follow the system
    }
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    document.documentElement.dataset.theme =
      saved() ?? (system.matches ? "dark" : "light");
  };
  apply();
  system.addEventListener("change", apply);
}
