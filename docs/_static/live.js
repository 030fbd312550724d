// Puts the live explorer in the place of its picture when the picture comes into sight. Without scripts the picture stays.
// On a phone it stays too, and leads to the page: fingers that turn the explorer could not scroll past it.
document.addEventListener('DOMContentLoaded', () => {
  const isNarrow = matchMedia('(max-width: 700px)').matches;
  const eye = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      eye.unobserve(target);
      const frame = document.createElement('iframe');
      frame.title = 'The explorer: drag tokens, eigenvalues and time';
      frame.addEventListener('load', () => target.classList.add('is-live'));
      frame.src = target.dataset.explorer;
      target.prepend(frame);
    }
  }, { rootMargin: '200px' });
  for (const place of document.querySelectorAll('[data-explorer]')) {
    if (isNarrow) place.addEventListener('click', () => location.assign(place.dataset.explorer));
    else eye.observe(place);
  }
});
