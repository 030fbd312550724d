// The only script that a page contains unpacked: it unpacks the script of the explorer and runs it. The policy allows both.

(async () => {
  try {
    const packed = document.getElementById('attnlab-script')?.textContent ?? '';
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const script = document.createElement('script');
    script.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
    document.body.append(script);
  } catch (problem) {
    const words = document.createElement('p');
    words.className = 'attnlab-problem';
    words.textContent = `This page needs a browser from 2023 or later. (${problem instanceof Error ? problem.message : problem})`;
    document.body.append(words);
  }
})();
